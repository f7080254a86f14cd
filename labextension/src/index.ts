/**
 * The JupyterLab plugin: gives live cards a second way to the kernel (its control channel, which a kernel reads even
 * while a cell keeps its main thread busy), opens whole outputs, and clears away live cards whose kernel has ended.
 */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';

import type { CardSpill } from './card/token';
import { controlMessage, documentOf, kernelOf, openKernel, requestPage } from './kernel';
import panel from './lab';
import { watch } from './lost';
import type { ContextLike, NotebookLike } from './lost';
import type { ControlBridge, ControlContent, ToKernel } from './messages';
import notebook from './notebook';
import settings from './settings';
import { openSpill } from './spill';

/** The bridge that cards look for. */
export function createBridge(app: JupyterFrontEnd): ControlBridge {
  const { shell } = app;
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
    },
    open(card: Element, kernelId: string, spill: CardSpill): void {
      const document = documentOf(shell, card, kernelId);
      openSpill(app, spill, (line, count) =>
        requestPage(kernelOf(document), { kind: 'page', path: spill.path, line, count })
      );
    }
  };
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'opencode-jupyter:control',
  description: 'Answers tool cards through the kernel’s control channel and opens whole outputs.',
  autoStart: true,
  activate: (app: JupyterFrontEnd): void => {
    (globalThis as { __opencode_jupyter?: ControlBridge }).__opencode_jupyter = createBridge(app);
    app.docRegistry.addWidgetExtension('Notebook', {
      createNew: (panel, context) => {
        void watch(panel as unknown as NotebookLike, context as unknown as ContextLike);
      }
    });
  }
};

export default [settings, plugin, notebook, panel];
