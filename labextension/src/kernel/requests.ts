/** Ways to the kernel of an open document, by its control channel: a kernel hears it even while a cell is busy. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { PageConfig } from '@jupyterlab/coreutils';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';

import type { EditingRequest } from '../editing/messages';
import { trans } from '../card/i18n';
import type { ControlContent, ServedRequest, SettledRequest } from './messages';
import type { JobMessage } from '../notebook/protocol';
import type { SpillRequest } from '../viewer/source';

/** The type of the messages that the kernel's side listens for. */
export const MESSAGE_TYPE = 'opencode_jupyter';
/** How long a kernel may take to answer. */
const ANSWER_MS = 15_000;
/** How long after its handling a message's answer may come: both travel apart. */
const AFTER_IDLE_MS = 2_000;
/** Time is counted in such steps: while the page is busy an answer may lie ready, and its event comes between two of them. */
const STEP_MS = 500;

/** A kernel did not answer, be it busy or restarted; what only reads may be asked again. */
export class SilentError extends Error {}

/** What a kernel answers; its `kind` says who does. */
export type KernelRequest = SpillRequest | SettledRequest | ServedRequest | JobMessage | EditingRequest | { kind: 'panel'; what: string; [field: string]: unknown };

/** After these nothing of a kernel's past is there any more. */
export const ENDED = ['restarting', 'autorestarting', 'dead', 'terminating'];

type Shell = Pick<JupyterFrontEnd.IShell, 'widgets' | 'currentWidget'>;
type Connection = Kernel.IKernelConnection;

/** Whatever is open that may have a kernel: notebook, console, and what other extensions bring. */
export interface KernelDocument {
  node: HTMLElement;
  sessionContext?: { session?: { kernel?: Connection | null } | null };
}

/** Whether the server runs this page's cells and writes their outputs into the shared document. */
export function serverRunsCells(): boolean {
  return PageConfig.getOption('serverSideExecution') === 'true';
}

/** Everything open in `shell` that may have a kernel. */
export function documents(shell: Shell): KernelDocument[] {
  return openWidgets<KernelDocument>(shell).filter(({ sessionContext }) => sessionContext);
}

/** Every widget open in `shell`. */
export function openWidgets<T>(shell: Shell): T[] {
  return ['main', 'down', 'left', 'right'].flatMap(area => {
    try {
      return [...shell.widgets(area)] as T[];
    } catch {
      return []; // JupyterLab up to 4.4 does not know `down`
    }
  });
}

/** A document's kernel, if one is there. */
export function kernelOf(document: KernelDocument | undefined): Connection | null {
  const kernel = document?.sessionContext?.session?.kernel;
  return kernel && !kernel.isDisposed && kernel.status !== 'dead' ? kernel : null;
}

/** The document that `card` stands in; else the one with the kernel `id`, or the one in front. */
export function documentOf(shell: Shell, card: Element, id: string): KernelDocument | undefined {
  const all = documents(shell);
  return (
    all.find(document => document.node.contains(card)) ??
    all.find(document => id !== '' && kernelOf(document)?.id === id) ??
    all.find(document => (document as unknown) === shell.currentWidget)
  );
}

/** A control message that carries `content`. */
export function controlMessage(kernel: Connection, content: ControlContent): KernelMessage.IControlMessage {
  const message = {
    header: {
      msg_id: UUID.uuid4(),
      msg_type: MESSAGE_TYPE,
      session: kernel.clientId,
      username: kernel.username,
      date: new Date().toISOString(),
      version: '5.3'
    },
    parent_header: {},
    metadata: {},
    channel: 'control',
    buffers: [],
    content
  };
  return message as unknown as KernelMessage.IControlMessage;
}

/** The kernel's reply to a request on its control channel. Rejected with words for a person when none comes. */
export function requestKernel(kernel: Connection | null, request: KernelRequest): Promise<unknown> {
  if (!kernel) {
    return Promise.reject(new Error('No kernel is running here.'));
  }
  return new Promise((resolve, reject) => {
    const message = controlMessage(kernel, { comm_id: '', data: request });
    const future = kernel.sendControlMessage(message, true, false);
    let left = ANSWER_MS;
    let timeoutError: Error = new SilentError(trans.__('The kernel does not answer.'));
    const end = (error?: Error): void => {
      clearInterval(timer);
      future.dispose();
      if (error) {
        reject(error);
      }
    };
    const timer = setInterval(() => {
      left -= STEP_MS;
      if (left <= 0) {
        end(timeoutError);
      }
    }, STEP_MS);
    // a kernel that is restarted answers nothing of before
    future.done.catch(() => end(new SilentError(trans.__('The kernel was restarted before it answered.'))));
    future.onReply = reply => {
      resolve(reply.content);
      end();
    };
    future.onIOPub = ({ header, content }) => {
      if (header.msg_type === 'status' && (content as { execution_state?: string }).execution_state === 'idle') {
        left = AFTER_IDLE_MS;
        timeoutError = new Error(trans.__('The extension is not loaded in this kernel.'));
      }
    };
  });
}
