/** What a card sends to the kernel; the same whether it goes over the widget's comm or the control channel. */

import type { Reply, Scope } from './card/token';

/** A card was drawn: somebody can click. */
export interface Hello {
  kind: 'hello';
  frontend: string;
  version: string;
}

/** A person's answer to an ask. */
export interface Answer {
  kind: 'reply';
  id: string;
  digest: string;
  reply: Reply;
  message?: string;
  patterns?: string[];
  scope?: Scope;
}

/** A person stops a call. */
export interface Stop {
  kind: 'stop';
  callID: string;
}

export type ToKernel = Hello | Answer | Stop;

/** Content of an `opencode_jupyter` message on the control channel. */
export interface ControlContent {
  /** The widget's model, which is the comm's id too. */
  comm_id: string;
  data: ToKernel;
}

/** What the JupyterLab extension puts at `globalThis.__opencode_jupyter`. */
export interface ControlBridge {
  /** Sends `message` by the control channel of the kernel `kernelId`; false if no open document has that kernel. */
  send(kernelId: string, commId: string, message: ToKernel): boolean;
}
