/** What a card sends to the kernel; the same whether it goes over the widget's comm or the control channel. */

import type { CardAsk, CardCallbacks, Reply, ReplyOptions, SpillLink } from '../card/types';
import type { Model } from './liveWidget';

/** What a card sends. */
export type ToKernel =
  /** It was drawn: somebody can click. */
  | { kind: 'hello'; frontend: string; version: string }
  /** A person's reply to a permission request. */
  | ({ kind: 'reply'; id: string; digest: string; reply: Reply } & ReplyOptions)
  /** A person's answers to questions, one list for each. */
  | { kind: 'answer'; id: string; digest: string; answers: string[][] }
  /** A person does not want to answer questions. */
  | { kind: 'dismiss'; id: string; digest: string }
  /** A person stops a call. */
  | { kind: 'stop'; callID: string };

/** What a card calls when a person answers or stops something, as messages. */
export function replyCallbacks(send: (message: ToKernel) => void): CardCallbacks {
  return {
    reply: ({ id, digest }, reply, options) => send({ kind: 'reply', id, digest, reply, ...options }),
    answer: ({ id, digest }, answers) => send({ kind: 'answer', id, digest, answers }),
    dismiss: ({ id, digest }) => send({ kind: 'dismiss', id, digest }),
    stop: callID => send({ kind: 'stop', callID })
  };
}

/** Wants to know where the server shows a file of the kernel's machine; the answer is `{path}`, null if nowhere. */
export interface ServedRequest {
  kind: 'served';
  path: string;
}

/** Wants what live cards became that this page shows no longer. */
export interface SettledRequest {
  kind: 'settled';
  callIDs: string[];
}

/** The kernel's answer: MIME bundles by call id, of those it still has. */
export interface SettledReply {
  cards?: Record<string, Record<string, unknown>>;
  /** Their outputs' metadata. */
  metadata?: Record<string, Record<string, unknown>>;
}

/** Content of an `opencode_jupyter` message on the control channel. */
export interface ControlContent {
  /** The widget's model, which is the comm's id too. */
  comm_id: string;
  data: ToKernel | { kind: string };
}

/** What the JupyterLab extension puts at `globalThis.__opencode_jupyter`. */
export interface ControlBridge {
  /** Sends `message` by the control channel of the kernel `kernelId`; false if no open document has that kernel. */
  send(kernelId: string, commId: string, message: ToKernel): boolean;
  /** The live card's widget `modelId`, for a cell in which JupyterLab draws no widgets; nothing where `card` has no kernel. */
  liveModel?(card: Element, modelId: string): Model | undefined;
  /** Starts the call that waits for approval again with other arguments; rejected with a text for a person. */
  revise(kernelId: string, ask: CardAsk, input: Record<string, unknown>): Promise<void>;
  /** Opens the whole of a cut output. `card` is where it was asked for; its document's kernel reads the file. */
  open(card: Element, kernelId: string, spill: SpillLink): void;
  /** Whether a call can be made again where `card` stands: in a notebook with a kernel. */
  canRun?(card: Element): boolean;
  /** Puts `source` into a new cell below the one of `card` and runs it. */
  runAgain?(card: Element, source: string): void;
  /** Draws the TeX in `formula` as JupyterLab draws it in Markdown cells. */
  typeset?(formula: HTMLElement): void;
  /** Whether `card` stands in a notebook that takes cells. */
  canInsert?(card: Element): boolean;
  /** Puts `source` into a new cell below the one of `card`, which is not run. */
  insertCell?(card: Element, source: string): void;
  /** The shortcuts of the commands that answer a request, as a person reads them. */
  keys?(): { once?: string; session?: string; deny?: string };
  /** Opens a file of the kernel's machine in the ordinary editor, at `line` from 1, where the server has it. */
  openFile?(card: Element, kernelId: string, path: string, line?: number): void;
  /** Shows what the documentation says of an error's code. */
  explain?(code: string): void;
}

/** What the cards at `node` can open, where the JupyterLab extension is there. */
export function openCallbacks(node: Element, kernelId: () => string = () => ''): CardCallbacks {
  return bridge()
    ? {
        open: spill => bridge()?.open(node, kernelId(), spill),
        openFile: (path, line) => bridge()?.openFile?.(node, kernelId(), path, line),
        explain: code => bridge()?.explain?.(code)
      }
    : {};
}

/** The bridge, where the JupyterLab extension has put one. */
export function bridge(): ControlBridge | undefined {
  return (globalThis as { __opencode_jupyter?: ControlBridge }).__opencode_jupyter;
}
