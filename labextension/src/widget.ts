/**
 * The live card of a call, or of a model's run: the front end of the anywidget models whose Python side is
 * `opencode_jupyter/jupyter/card.py` and `opencode_jupyter/jupyter/agent/card.py`.
 */

import css from '../style/card.css';
import runCss from '../style/run.css';
import { disposeCard, renderCard, updateTail } from './card';
import type { CardAsk, CardCallbacks, CardPart, Reply, ReplyOptions, TailUpdate } from './card';
import { hearAlways } from './late';
import type { Manager } from './late';
import { bridge } from './messages';
import type { ToKernel } from './messages';
import { disposeRun, renderRun, updateRun } from './run';
import type { RunPart, RunUpdate, RunWhole } from './run';
import { VERSION } from './version';

/** What this module needs of an anywidget model. */
interface Model {
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

const STYLE_ID = 'opencode-jupyter-card';

/** Adds the card's style sheet to the tree that `el` stands in, once. */
function addStyle(el: HTMLElement): void {
  const tree = el.getRootNode();
  const host = tree instanceof ShadowRoot ? tree : document.head;
  if (!host.querySelector(`#${STYLE_ID}`)) {
    const style = document.createElement('style');
    style.id = STYLE_ID;
    style.textContent = css + runCss;
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
  void hearAlways(model.widget_manager, model.model_id ?? model.get('comm_id') ?? '');
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
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
    attempt('control channel', () => bridge()?.send?.(model.get('kernel_id') ?? '', commId, message));
    attempt('widget', () => model.send(message));
  };
  const callbacks: CardCallbacks = {
    reply: (ask: CardAsk, reply: Reply, options: ReplyOptions): void =>
      send({ kind: 'reply', id: ask.id, digest: ask.digest, reply, ...options }),
    answer: ({ id, digest }, answers): void => send({ kind: 'answer', id, digest, answers }),
    dismiss: ({ id, digest }): void => send({ kind: 'dismiss', id, digest }),
    stop: (callID: string): void => send({ kind: 'stop', callID })
  };
  if (bridge()) {
    callbacks.open = spill => bridge()?.open(el, model.get('kernel_id') ?? '', spill);
    callbacks.openFile = (path, line) => bridge()?.openFile?.(el, model.get('kernel_id') ?? '', path, line);
  }
  if (bridge()?.revise) {
    callbacks.revise = async (ask, input) => bridge()?.revise(model.get('kernel_id') ?? '', ask, input);
  }
  const hello = (): void => send({ kind: 'hello', frontend: frontend(), version: VERSION });
  const end = model.get('run') ? showRun(model, el, callbacks, hello) : showCall(model, el, callbacks);
  addStyle(el);
  // some hosts put the card into a shadow tree after it is drawn
  requestAnimationFrame(() => addStyle(el));
  hello();
  return end;
}

/** Shows the call of `model`; gives what ends that. */
function showCall(model: Model, el: HTMLElement, callbacks: CardCallbacks): () => void {
  const draw = (): void => {
    const part = model.get('part');
    // before its first state, and after the kernel closed it, a card has no part
    if (part?.state && part.ui) {
      renderCard(el, part, callbacks);
    }
  };
  const message = (content: { kind?: string } & Partial<TailUpdate>): void => {
    if (content.kind === 'tail') {
      const { text = '', lines, bytes, progress } = content;
      updateTail(el, { text, lines, bytes, progress });
    }
  };
  model.on('change:part', draw);
  model.on('msg:custom', message);
  draw();
  return () => {
    model.off('change:part', draw);
    model.off('msg:custom', message);
    disposeCard(el);
  };
}

/** Shows the run of `model`; `more` asks the kernel for the whole of it. Gives what ends that. */
function showRun(model: Model, el: HTMLElement, callbacks: CardCallbacks, more: () => void): () => void {
  const run = model.get('run');
  if (run?.items) {
    renderRun(el, run, callbacks);
  }
  const message = (content: RunUpdate | RunWhole): void => {
    if (content.kind === 'whole') {
      renderRun(el, content.run, callbacks);
    } else if (content.kind === 'run' && !updateRun(el, content)) {
      more();
    }
  };
  model.on('msg:custom', message);
  return () => {
    model.off('msg:custom', message);
    disposeRun(el);
  };
}

export default { initialize, render };
