/**
 * The JupyterLab plugin for notebooks that tools read and change: a notebook that is open here is changed here, where
 * a person sees it, and its unsaved work is kept.
 */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';

import { documents as kernelDocuments, requestKernel } from '../kernel/requests';
import { Documents } from './documents';
import type { OpenContext } from './documents';
import { Listener } from './listener';
import type { Session } from './listener';
import { Relay } from './relay';
import type { Channel } from './relay';

type Context = OpenContext & { sessionContext: Session };

/** A widget with a kernel; a document's widget has its context. */
interface Opened {
  sessionContext: Session;
  context?: Context;
}

/** Starts everything for one page. */
export function activate(app: JupyterFrontEnd): void {
  const { paths } = app as { paths?: Partial<JupyterFrontEnd.IPaths> };
  const page = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  const documents = new Documents(page, paths?.directories?.serverRoot ?? '', () => scan());
  const relay = new Relay(page, openChannel(paths?.urls?.base ?? ''), (job, kernelId) => documents.perform(job, kernelId));
  const listener = new Listener(documents, relay, (kernel, word) => requestKernel(kernel, word));
  globalThis.addEventListener?.('pagehide', () => relay.leave());
  const opened = (context: Context): void => {
    documents.add(context);
    listener.listen(context.sessionContext);
  };
  const extension = { createNew: (_: unknown, context: unknown): void => opened(context as Context) };
  app.docRegistry.addWidgetExtension('Notebook', extension);
  app.docRegistry.addWidgetExtension('Editor', extension);
  // What was open before this plugin was started, consoles, and what other extensions bring with a kernel.
  const scan = (): void => {
    for (const { context, sessionContext } of kernelDocuments(app.shell) as Iterable<Opened>) {
      listener.listen(sessionContext);
      if (context) {
        opened(context);
      }
    }
  };
  const { layoutModified } = app.shell as { layoutModified?: { connect(slot: () => void): unknown } };
  (layoutModified ?? app.shell.currentChanged)?.connect(scan);
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
