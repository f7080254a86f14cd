/** What live cards of calls and of runs have in common: their style, what they send to the kernel, their first message. */

import type { CardCallbacks, CardPart } from '../card';
import { receiveAllMessages } from './anywidgetWorkaround';
import type { Manager } from './anywidgetWorkaround';
import { replyCallbacks, bridge, openCallbacks } from './messages';
import type { ToKernel } from './messages';
import type { RunPart } from '../run/types';
import { VERSION } from '../card/version';

/** What this module needs of an anywidget model. */
export interface Model {
  /** The comm's id; a host may leave it out, then the trait `comm_id` tells it. */
  model_id?: string;
  widget_manager?: Manager;
  get(name: 'part'): CardPart | undefined;
  get(name: 'run'): RunPart | undefined;
  get(name: 'kernel_id' | 'comm_id'): string | undefined;
  on(event: string, callback: (...args: never[]) => void): void;
  off(event: string, callback: (...args: never[]) => void): void;
  send(content: unknown): void;
}

/** Shows a model in `el`; `more` asks the kernel for the whole of it. Gives what ends that. */
export type ShowModel = (model: Model, el: HTMLElement, callbacks: CardCallbacks, more: () => void) => () => void;

/** What anywidget wants of a module. */
export interface Widget {
  initialize(options: { model: Model }): void;
  render(options: { model: Model; el: HTMLElement }): () => void;
}

const STYLE_ID = 'opencode-jupyter-';

/** Adds the style sheet `name` to the tree that `el` stands in, once. */
function addStyle(el: HTMLElement, name: string, css: string): void {
  const tree = el.getRootNode();
  const host = tree instanceof ShadowRoot ? tree : document.head;
  if (!host.querySelector(`#${STYLE_ID}${name}`)) {
    const style = document.createElement('style');
    style.id = STYLE_ID + name;
    style.textContent = css;
    host.append(style);
  }
}

/** Which front end this is, as far as the page tells. */
function frontend(): string {
  if ((globalThis as { google?: { colab?: unknown } }).google?.colab) {
    return 'colab';
  }
  const { body } = document;
  if (body.dataset.vscodeThemeKind !== undefined) {
    return 'vscode';
  }
  return body.dataset.jpThemeName !== undefined || body.dataset.jpThemeLight !== undefined ? 'jupyterlab' : 'other';
}

function initialize({ model }: { model: Model }): void {
  void receiveAllMessages(model.widget_manager, model.model_id ?? model.get('comm_id') ?? '');
}

/** Shows `model` in `el`, connected to the kernel by every way there is. Gives what ends that. */
export function connectCard(model: Model, el: HTMLElement, show: ShowModel): () => void {
  const send = (message: ToKernel): void => {
    // both ways at once: the kernel takes the first that arrives, and which one does depends on its version
    const attempt = (way: string, deliver: () => void): void => {
      try {
        deliver();
      } catch (error) {
        console.debug(`opencode-jupyter: the ${way} took no message`, error);
      }
    };
    const commId = model.model_id ?? model.get('comm_id') ?? '';
    attempt('control channel', () => bridge()?.send?.(kernelId(), commId, message));
    attempt('widget', () => model.send(message));
  };
  const kernelId = (): string => model.get('kernel_id') ?? '';
  const callbacks: CardCallbacks = { ...replyCallbacks(send), ...openCallbacks(el, kernelId), keys: () => bridge()?.keys?.() ?? {} };
  if (bridge()?.revise) {
    callbacks.revise = async (ask, input) => bridge()?.revise(kernelId(), ask, input);
  }
  const hello = (): void => send({ kind: 'hello', frontend: frontend(), version: VERSION });
  const end = show(model, el, callbacks, hello);
  hello();
  return end;
}

function render({ model, el }: { model: Model; el: HTMLElement }, name: string, css: string, show: ShowModel): () => void {
  const end = connectCard(model, el, show);
  addStyle(el, name, css);
  // some hosts put the card into a shadow tree after it is drawn
  requestAnimationFrame(() => addStyle(el, name, css));
  return end;
}

/**
 * The front end of an anywidget model.
 *
 * @param name - Of its style sheet, which a page has once.
 * @param css - The style sheet.
 */
export function createWidget(name: string, css: string, show: ShowModel): Widget {
  return { initialize, render: (options: { model: Model; el: HTMLElement }) => render(options, name, css, show) };
}
