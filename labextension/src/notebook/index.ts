/**
 * The JupyterLab plugin for notebooks that tools read and change: a notebook that is open here is changed here, where
 * a person sees it, and its unsaved work is kept.
 */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';

import { documents as kernelDocuments, requestKernel } from '../kernel';
import { Documents } from './documents';
import type { OpenContext } from './documents';
import { Listener } from './listener';
import type { Session } from './listener';
import { Relay } from './relay';
import type { Channel } from './relay';

/** Starts everything for one page. */
export function activate(app: JupyterFrontEnd): void {
  const { paths } = app as { paths?: Partial<JupyterFrontEnd.IPaths> };
  const page = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  const documents = new Documents(page, paths?.directories?.serverRoot ?? '');
  const relay = new Relay(page, openChannel(paths?.urls?.base ?? ''), (job, kernelId) => documents.perform(job, kernelId));
  const listener = new Listener(documents, relay, (kernel, word) => requestKernel(kernel, word));
  globalThis.addEventListener?.('pagehide', () => relay.leave());
  const watch = (text: boolean) => ({
    createNew: (_: unknown, context: unknown): void => {
      const opened = context as OpenContext & { sessionContext: Session };
      if (opened.path.toLowerCase().endsWith('.ipynb')) {
        documents.add(opened, text);
      }
      listener.listen(opened.sessionContext);
    }
  });
  app.docRegistry.addWidgetExtension('Notebook', watch(false));
  app.docRegistry.addWidgetExtension('Editor', watch(true));
  // consoles, and what other extensions bring with a kernel
  const scan = (): void => {
    for (const { sessionContext } of kernelDocuments(app.shell)) {
      listener.listen(sessionContext as Session);
    }
  };
  const { layoutModified } = app.shell as { layoutModified?: { connect(slot: () => void): unknown } };
  layoutModified?.connect(scan);
  void app.restored.then(scan);
}

/** The channel to other tabs on the same server: several servers may share an origin. */
function openChannel(base: string): Channel | null {
  return typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel(`opencode-jupyter:${base}`);
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'opencode-jupyter:notebook',
  description: 'Changes open notebooks for the notebook tools of opencode_jupyter.',
  autoStart: true,
  activate
};

export default plugin;
