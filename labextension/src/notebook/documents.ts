/** The notebooks that are open in this page, and what is done with them for a kernel. */

import type { NotebookPanel } from '@jupyterlab/notebook';

import { applyChange } from './applyChange';
import type { SharedNotebook } from './applyChange';
import { cellsOf } from './trimOutputs';
import type { Answer, CellJson, DocumentInfo, Job } from './protocol';

/** How long a document that is being loaded is waited for. */
const LOADING_MS = 3_000;

/** The context of an open notebook, also of one that is open as plain text. */
export type Context = NotebookPanel['context'];

interface Entry {
  id: string;
  context: Context;
}

/** A drive whose files the server keeps in its own folder: the default one, and that of shared editing. */
const LOCAL_DRIVES = ['', 'RTC'];

/** The documents of one page. */
export class Documents {
  private readonly ids = new WeakMap<Context, string>();
  private count = 0;

  /**
   * @param page - this page's id.
   * @param root - the server's root folder.
   * @param contexts - the documents that are open now.
   */
  constructor(
    readonly page: string,
    private readonly root: string,
    private readonly contexts: () => Iterable<Context>
  ) {}

  /** The notebooks' files, each once: it may have several views. */
  private entries(): Entry[] {
    const files = [...new Set(this.contexts())].filter(({ path }) => path.toLowerCase().endsWith('.ipynb'));
    return files.map(context => {
      const id = this.ids.get(context) ?? String(++this.count);
      this.ids.set(context, id);
      return { id, context };
    });
  }

  /** Does a job of the kernel `kernelId`. */
  async perform(job: Job, kernelId: string): Promise<Answer> {
    if (job.op === 'find') {
      return { documents: await this.find(job.name, kernelId) };
    }
    const context = this.entries().find(entry => entry.id === job.document)?.context;
    if (!context || context.isDisposed || !context.isReady || isText(context)) {
      return { error: 'closed' };
    }
    if (job.op === 'change') {
      if (context.model.readOnly || context.contentsModel?.writable === false) {
        return { error: 'read-only' };
      }
      const error = applyChange(context.model.sharedModel, job.change);
      if (error) {
        return { error };
      }
    }
    const { cells, ...head } = context.model.sharedModel.toJSON();
    const [first, count] = job.op === 'read' ? [job.first, job.count] : [0, 0];
    return { head, cells: cellsOf(cells as unknown as CellJson[], first, count), dirty: context.model.dirty };
  }

  private async find(name: string, kernelId: string): Promise<DocumentInfo[]> {
    const own = ({ sessionContext }: Context): boolean => sessionContext.session?.kernel?.id === kernelId;
    // The kernel's own documents are told in any case: from them it knows the server's root where the page does not.
    const local = this.entries().filter(({ context }) => isLocal(context));
    const named = local.filter(({ context }) => own(context) || lastPart(context.path) === name);
    const timeout = new Promise(resolve => setTimeout(resolve, LOADING_MS));
    await Promise.all(named.filter(entry => !entry.context.isReady).map(entry => Promise.race([entry.context.ready, timeout])));
    return named
      .filter(({ context }) => context.isReady && !context.isDisposed)
      .map(({ id, context }) => ({
        page: this.page,
        document: id,
        path: context.localPath,
        root: this.root,
        own: own(context),
        dirty: context.model.dirty,
        shared: Boolean(context.model.collaborative) || drive(context) === 'RTC',
        text: isText(context)
      }));
  }
}

/** Whether a notebook's file is open as plain text. */
function isText({ model }: Context): boolean {
  return !(model.sharedModel as Partial<SharedNotebook> | undefined)?.cells;
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1).replace(/^[^:/]*:/, '');
}

/** The name of a document's drive: what its path has before its local path. */
function drive({ path, localPath }: Context): string {
  return path.length > localPath.length ? path.slice(0, path.length - localPath.length).replace(/:\/?$/, '') : '';
}

function isLocal(context: Context): boolean {
  return LOCAL_DRIVES.includes(drive(context));
}
