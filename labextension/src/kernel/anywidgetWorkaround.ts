/**
 * anywidget gives a model two seconds to set itself up, then drops every message to it for good: on a page that is busy
 * (a large notebook that loads) a card would never learn that its call waits for approval. So a card's model, once it is set up, takes
 * its messages as every other widget does; the kernel sends anew what a late card may have missed.
 */

type Handler = (message: unknown) => unknown;

/** What is needed of the model behind the one that anywidget hands out. */
export interface WidgetModel {
  comm?: { on_msg?(callback: Handler): void };
}

export interface Manager {
  get_model?(id: string): Promise<WidgetModel> | undefined;
}

/** The handler of the base class that anywidget's own stands in front of. */
function inherited(model: WidgetModel): Handler | undefined {
  let own: Handler | undefined;
  for (let at: unknown = Object.getPrototypeOf(model); at; at = Object.getPrototypeOf(at)) {
    const handler = Object.getOwnPropertyDescriptor(at, '_handle_comm_msg')?.value as Handler | undefined;
    if (handler && own) {
      return handler;
    }
    own ??= handler;
  }
  return undefined;
}

/** Has the model `id` receive its messages, however long it took to set up. */
export async function receiveAllMessages(manager: Manager | undefined, id: string): Promise<void> {
  try {
    const model = await manager?.get_model?.(id);
    const handler = model && inherited(model);
    if (handler) {
      model.comm?.on_msg?.(handler.bind(model));
    }
  } catch {
    // a host that keeps its models to itself
  }
}
