/**
 * The JupyterLab plugin that gives live cards a second way to the kernel: its control channel, which a kernel reads
 * even while a cell keeps its main thread busy.
 */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { Kernel, KernelMessage } from '@jupyterlab/services';

import type { ControlBridge, ControlContent, ToKernel } from './messages';

/** The type of the messages that the kernel's side listens for. */
export const MESSAGE_TYPE = 'opencode_jupyter';

/** Whatever is open that may have a kernel: notebook, console, and what other extensions bring. */
interface MaybeKernelDocument {
  sessionContext?: { session?: { kernel?: Kernel.IKernelConnection | null } | null };
}

/** The kernel connection with `id` among the documents open in `shell`. */
export function openKernel(shell: Pick<JupyterFrontEnd.IShell, 'widgets'>, id: string): Kernel.IKernelConnection | null {
  for (const area of ['main', 'down', 'left', 'right']) {
    for (const widget of shell.widgets(area)) {
      const kernel = (widget as MaybeKernelDocument).sessionContext?.session?.kernel;
      if (kernel?.id === id && !kernel.isDisposed) {
        return kernel;
      }
    }
  }
  return null;
}

/** A control message that carries `content`. */
export function controlMessage(kernel: Kernel.IKernelConnection, content: ControlContent): KernelMessage.IControlMessage {
  const message = {
    header: {
      msg_id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`,
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

/** The bridge that cards look for. */
export function createBridge(shell: Pick<JupyterFrontEnd.IShell, 'widgets'>): ControlBridge {
  return {
    send(kernelId: string, commId: string, message: ToKernel): boolean {
      const kernel = openKernel(shell, kernelId);
      if (!kernel) {
        return false;
      }
      const content: ControlContent = { comm_id: commId, data: message };
      // the kernel's answer, if any, is of no interest: the card changes when the call goes on
      kernel.sendControlMessage(controlMessage(kernel, content), false, true);
      return true;
    }
  };
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'opencode-jupyter:control',
  description: 'Answers tool cards through the kernel’s control channel.',
  autoStart: true,
  activate: (app: JupyterFrontEnd): void => {
    (globalThis as { __opencode_jupyter?: ControlBridge }).__opencode_jupyter = createBridge(app.shell);
  }
};

export default plugin;
