/**
 * Puts words in place of live cards whose kernel ended before the call did: JupyterLab would show an empty widget.
 * Such an output also has the card of a call whose end nobody knows; without the widget, that is what is drawn.
 */

import type { Kernel } from '@jupyterlab/services';

import { CARD_MIME } from './card/token';

const WIDGET_MIME = 'application/vnd.jupyter.widget-view+json';
const COMM_TARGET = 'jupyter.widget';
/** Kernel states after which no widget of before has a kernel's side. */
const ENDED = ['restarting', 'autorestarting', 'dead', 'terminating'];

interface Output {
  data?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

interface Outputs {
  length: number;
  get(index: number): { toJSON(): unknown };
  set(index: number, value: never): void;
}

interface Signal<T> {
  connect(slot: (sender: unknown, value: T) => void): unknown;
}

/** What is needed of a notebook's panel. */
export interface NotebookLike {
  content: { model: { cells: { length: number; get(index: number): { outputs?: Outputs } } } | null };
}

/** What is needed of its document's context. */
export interface ContextLike {
  ready: Promise<unknown>;
  sessionContext: {
    ready: Promise<unknown>;
    session: { kernel: Kernel.IKernelConnection | null } | null;
    statusChanged: Signal<string>;
    kernelChanged: Signal<unknown>;
  };
}

/** Takes the widget out of the outputs that have a card beside it and whose widget is `gone`. */
export function dropLost(panel: NotebookLike, gone: (modelId: string) => boolean): number {
  const cells = panel.content.model?.cells;
  let dropped = 0;
  for (let c = 0; c < (cells?.length ?? 0); c++) {
    const outputs = cells?.get(c).outputs;
    for (let o = 0; o < (outputs?.length ?? 0); o++) {
      const output = outputs?.get(o).toJSON() as Output;
      const { [WIDGET_MIME]: view, ...data } = output.data ?? {};
      if (view && data[CARD_MIME] && gone((view as { model_id?: string }).model_id ?? '')) {
        outputs?.set(o, { ...output, data } as never);
        dropped++;
      }
    }
  }
  return dropped;
}

/** Watches a notebook: when it is opened, and when its kernel ends. */
export async function watch(panel: NotebookLike, context: ContextLike): Promise<void> {
  const { sessionContext } = context;
  const check = async (): Promise<void> => {
    const kernel = sessionContext.session?.kernel;
    if (!kernel) {
      dropLost(panel, () => true);
      return;
    }
    if (!hasLive(panel)) {
      return;
    }
    try {
      // a busy kernel answers when its cell is over
      const { content } = await kernel.requestCommInfo({ target_name: COMM_TARGET });
      if (content.status === 'ok' && sessionContext.session?.kernel === kernel) {
        dropLost(panel, id => !(id in content.comms));
      }
    } catch {
      // the kernel went away meanwhile, which its status tells
    }
  };
  sessionContext.statusChanged.connect((_, status) => {
    if (ENDED.includes(status)) {
      dropLost(panel, () => true);
    }
  });
  await context.ready;
  await sessionContext.ready;
  sessionContext.kernelChanged.connect(() => void check());
  await check();
}

function hasLive(panel: NotebookLike): boolean {
  let found = false;
  dropLost(panel, () => {
    found = true;
    return false;
  });
  return found;
}
