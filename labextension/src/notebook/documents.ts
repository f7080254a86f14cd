/** The notebooks that are open in this page, and what is done with them for a kernel. */

import { applyChange } from './change';
import type { SharedNotebook } from './change';
import { cellsOf } from './content';
import type { Answer, CellJson, DocumentInfo, Job } from './protocol';

/** How long a document that is being loaded is waited for. */
const LOADING_MS = 3_000;

/** What is needed of a document's context. */
export interface OpenContext {
  readonly path: string;
  readonly localPath: string;
  readonly isReady: boolean;
  readonly ready: Promise<unknown>;
  readonly isDisposed: boolean;
  readonly contentsModel?: { writable?: boolean } | null;
  readonly disposed: { connect(slot: () => void): unknown };
  readonly sessionContext?: { session?: { kernel?: { id: string } | null } | null };
  readonly model: {
    readonly dirty: boolean;
    readonly readOnly?: boolean;
    readonly collaborative?: boolean;
    readonly sharedModel?: unknown;
  };
}

interface Entry {
  id: string;
  context: OpenContext;
}

/** A drive whose files the server keeps in its own folder: the default one, and that of shared editing. */
const LOCAL_DRIVES = ['', 'RTC'];

/** The documents of one page. */
export class Documents {
  private entries: Entry[] = [];
  private count = 0;

  /**
   * @param page - this page's id.
   * @param root - the server's root folder.
   * @param look - adds documents that were not noticed when they were opened.
   */
  constructor(
    readonly page: string,
    private readonly root: string,
    private readonly look: () => void = () => undefined
  ) {}

  /** Keeps `context`, if it is a notebook's file, while it is open. */
  add(context: OpenContext): void {
    if (!context.path.toLowerCase().endsWith('.ipynb') || this.entries.some(entry => entry.context === context)) {
      return; // something else, or a second view
    }
    const entry = { id: String(++this.count), context };
    this.entries.push(entry);
    context.disposed.connect(() => {
      this.entries = this.entries.filter(other => other !== entry);
    });
  }

  /** Does a job of the kernel `kernelId`. */
  async perform(job: Job, kernelId: string): Promise<Answer> {
    if (job.op === 'find') {
      return { documents: await this.find(job.name, kernelId) };
    }
    const context = this.entries.find(entry => entry.id === job.document)?.context;
    if (!context || context.isDisposed || !context.isReady || isText(context)) {
      return { error: 'closed' };
    }
    const shared = context.model.sharedModel as SharedNotebook & { toJSON(): Record<string, unknown> };
    if (job.op === 'change') {
      if (context.model.readOnly || context.contentsModel?.writable === false) {
        return { error: 'read-only' };
      }
      const error = applyChange(shared, job.change);
      if (error) {
        return { error };
      }
    }
    const { cells, ...head } = shared.toJSON();
    const [first, count] = job.op === 'read' ? [job.first, job.count] : [0, 0];
    return { head, cells: cellsOf(cells as CellJson[], first, count), dirty: context.model.dirty };
  }

  private async find(name: string, kernelId: string): Promise<DocumentInfo[]> {
    this.look();
    const own = ({ sessionContext }: OpenContext): boolean => sessionContext?.session?.kernel?.id === kernelId;
    // The kernel's own documents are told in any case: from them it knows the server's root where the page does not.
    const local = this.entries.filter(({ context }) => isLocal(context));
    const named = local.filter(({ context }) => own(context) || lastPart(context.path) === name);
    const late = new Promise(resolve => setTimeout(resolve, LOADING_MS));
    await Promise.all(named.filter(entry => !entry.context.isReady).map(entry => Promise.race([entry.context.ready, late])));
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
function isText({ model }: OpenContext): boolean {
  return !(model.sharedModel as Partial<SharedNotebook> | undefined)?.cells;
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1).replace(/^[^:/]*:/, '');
}

/** The name of a document's drive: what its path has before its local path. */
function drive({ path, localPath }: OpenContext): string {
  return path.length > localPath.length ? path.slice(0, path.length - localPath.length).replace(/:\/?$/, '') : '';
}

function isLocal(context: OpenContext): boolean {
  return LOCAL_DRIVES.includes(drive(context));
}
