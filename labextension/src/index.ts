/**
 * The JupyterLab plugin: gives live cards a second way to the kernel (its control channel, which a kernel reads even
 * while a cell keeps its main thread busy), opens whole outputs, and clears away live cards whose kernel has ended.
 */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { ILatexTypesetter, IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { createBridge } from './kernel/bridge';
import editing from './editing';
import { skipCardHeadings } from './notebook/cardHeadings';
import { serverRunsCells } from './kernel/requests';
import panel from './panel';
import kernels, { IKernelHub } from './kernel/hub';
import type { KernelHub } from './kernel/hub';
import { dropSuperseded, watchNotebook } from './notebook/orphanedCards';
import type { ControlBridge } from './kernel/messages';
import notebook from './notebook';
import settings from './panel/settings';

/** After so many milliseconds the settled card, which comes by the shared document, is looked for. */
const SETTLED_MS = [100, 1_000, 5_000];

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'opencode-jupyter:control',
  description: 'Answers tool cards through the kernel’s control channel and opens whole outputs.',
  autoStart: true,
  requires: [IKernelHub],
  optional: [ILatexTypesetter, IRenderMimeRegistry],
  activate: (
    app: JupyterFrontEnd,
    hub: KernelHub,
    typesetter: ILatexTypesetter | null,
    rendermime: IRenderMimeRegistry | null
  ): void => {
    const page = globalThis as { __opencode_jupyter?: ControlBridge };
    page.__opencode_jupyter = createBridge(app, hub, typesetter, rendermime);
    app.docRegistry.addWidgetExtension('Notebook', {
      createNew: (panel: NotebookPanel, context: NotebookPanel['context']): void => {
        void watchNotebook(panel, context, id => hub.comms.shown(id));
        if (serverRunsCells()) {
          const look = (): void => void (panel.isDisposed || dropSuperseded(panel));
          const closed = (): void => SETTLED_MS.forEach(delay => setTimeout(look, delay));
          hub.comms.closed.connect(closed);
          panel.disposed.connect(() => hub.comms.closed.disconnect(closed));
        }
        void context.ready.then(() => skipCardHeadings(panel.content.widgets));
      }
    });
  }
};

export default [settings, kernels, plugin, notebook, panel, ...editing];
