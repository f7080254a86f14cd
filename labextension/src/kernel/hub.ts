/**
 * The kernels of everything that is open in this page and has our extension loaded: what the panels show comes from
 * here. A kernel notifies (`{"kind": "panel", "topics": [...]}` on IOPub), and panels query it again on its control channel,
 * which it hears while a cell is busy. `opencode_jupyter/jupyter/panel/service.py` is the other side.
 */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import { Token } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import { LiveComms } from './liveComms';
import type { IOPubMessage } from './liveComms';
import { controlMessage, documents, ENDED, kernelOf, MESSAGE_TYPE, requestKernel, serverRunsCells } from './requests';
import type { KernelDocument } from './requests';
import type { CardAsk } from '../card/types';
import type { ToKernel } from './messages';

const KIND = 'panel';
/** What may have changed; `hello` and `bye`: the extension was loaded or unloaded there. */
export type Topic = 'hello' | 'bye' | 'asks' | 'calls' | 'tools' | 'rules' | 'servers';
/** All that a panel may have to query again when a kernel comes or goes. */
export const ALL_TOPICS: readonly Topic[] = ['asks', 'calls', 'tools', 'rules', 'servers'];

/** A request of a panel; each handler of the kernel's side has its `what`. */
export interface PanelRequest {
  what: string;
  [field: string]: unknown;
}

/** A kernel with our extension, and the document that it belongs to. */
export interface OpenKernel {
  id: string;
  connection: Kernel.IKernelConnection;
  document: KernelDocument;
  /** The document's name, for a person. */
  name: string;
}

/** What has changed where. */
export interface Change {
  kernelId: string;
  topics: readonly Topic[];
}

/** A message of our own that a kernel published. */
export interface Received {
  kernel: Kernel.IKernelConnection;
  content: { kind?: string; topics?: Topic[] };
}

/** A notebook, or a console with less. */
type Opened = Pick<NotebookPanel, 'node' | 'title' | 'sessionContext'> & Partial<Pick<NotebookPanel, 'disposed' | 'context' | 'content'>>;

/** The plugin by which cells are run on the server. */
const SERVER_EXECUTOR = '@jupyter-ai-contrib/server-documents:server-cell-executor';

/** The hub of the page: several would each request everything anew. */
export const IKernelHub = new Token<KernelHub>('opencode-jupyter:IKernelHub');

/** The kernels with our extension in one page. */
export class KernelHub {
  /** A kernel says that something has changed, comes or goes. */
  readonly changed = new Signal<KernelHub, Change>(this);
  /** A message that is no panel's. */
  readonly received = new Signal<KernelHub, Received>(this);
  /** The live cards of these kernels. */
  readonly comms = new LiveComms();
  private readonly known = new Set<string>();
  private readonly sessions = new WeakSet<ISessionContext>();

  constructor(private readonly app: Pick<JupyterFrontEnd, 'shell' | 'restored' | 'docRegistry'> & { hasPlugin?(id: string): boolean }) {
    const { shell } = app;
    const extension = { createNew: (panel: unknown): void => void setTimeout(() => this.listen(panel as Opened)) };
    app.docRegistry.addWidgetExtension('Notebook', extension);
    const { layoutModified } = shell as { layoutModified?: { connect(slot: () => void): unknown } };
    (layoutModified ?? shell.currentChanged)?.connect(() => this.scan());
    void app.restored.then(() => this.scan());
  }

  /** The kernels, in the order of their documents. */
  kernels(): OpenKernel[] {
    const kernels: OpenKernel[] = [];
    for (const document of documents(this.app.shell)) {
      const connection = kernelOf(document);
      if (connection && this.known.has(connection.id) && !kernels.some(({ id }) => id === connection.id)) {
        kernels.push({ id: connection.id, connection, document, name: (document as Opened).title.label });
      }
    }
    return kernels;
  }

  /** The kernel of the document in front, if it has our extension. */
  current(): OpenKernel | undefined {
    const { currentWidget } = this.app.shell;
    return this.kernels().find(({ document }) => (document as unknown) === currentWidget);
  }

  /** The kernel's reply. Rejected with a text for a person. */
  async request<T>(kernelId: string, request: PanelRequest): Promise<T> {
    const kernel = this.kernels().find(({ id }) => id === kernelId);
    const reply = (await requestKernel(kernel?.connection ?? null, { kind: KIND, ...request })) as T & { error?: string };
    if (reply.error) {
      throw new Error(reply.error);
    }
    return reply;
  }

  /** Starts the call that waits for approval again with other arguments. Rejected with a text for a person. */
  async revise(kernelId: string, { id, digest }: CardAsk, input: Record<string, unknown>): Promise<void> {
    await this.request(kernelId, { what: 'revise', id, digest, input });
  }

  /** Sends a card's message, which has no answer: the card changes when the call goes on. False if no open document has that kernel. */
  send(kernelId: string, commId: string, message: ToKernel): boolean {
    const kernel = documents(this.app.shell).map(kernelOf).find(connection => connection?.id === kernelId);
    kernel?.sendControlMessage(controlMessage(kernel, { comm_id: commId, data: message }), false, true);
    return !!kernel;
  }

  private scan(): void {
    for (const document of documents(this.app.shell)) {
      this.listen(document as Opened);
    }
  }

  private listen(document: Opened): void {
    const { sessionContext: session } = document;
    if (!session || this.sessions.has(session)) {
      return;
    }
    this.sessions.add(session);
    session.iopubMessage.connect((_, message) => {
      const kernel = session.session?.kernel;
      if (kernel && (message.header.msg_type as string) === MESSAGE_TYPE) {
        const content = message.content as Received['content'];
        this.handleTopics(kernel.id, content.kind === KIND ? (content.topics ?? []) : []);
        this.received.emit({ kernel, content });
      } else if (kernel) {
        this.comms.receive(kernel.id, message as IOPubMessage);
      }
    });
    session.statusChanged.connect((_, status) => {
      const id = session.session?.kernel?.id;
      if (id && ENDED.includes(status)) {
        this.forget(id);
      }
    });
    let last = '';
    const look = (): void => {
      const kernel = session.session?.kernel;
      if (last && last !== kernel?.id) {
        this.forget(last);
      }
      last = kernel?.id ?? '';
      if (kernel) {
        void this.checkKernel(kernel, document);
      }
    };
    session.kernelChanged.connect(look);
    document.disposed?.connect(() => this.emitChange(last, ALL_TOPICS));
    look();
  }

  /**
   * Looks whether a kernel that ran before this page was opened has our extension. Only one whose document uses it is
   * asked: any other would log our message as unknown.
   */
  private async checkKernel(kernel: Kernel.IKernelConnection, document: Opened): Promise<void> {
    await document.context?.ready;
    if (!usesTools(document)) {
      return;
    }
    try {
      await requestKernel(kernel, { kind: KIND, what: 'asks' });
      this.handleTopics(kernel.id, []);
    } catch {
      // not loaded there; it says hello when it is
    }
  }

  private handleTopics(id: string, topics: readonly Topic[]): void {
    if (topics.includes('bye')) {
      this.forget(id);
      return;
    }
    const known = this.known.has(id);
    this.known.add(id);
    const server = known && !topics.includes('hello') ? '' : cellServer(this.app);
    if (server) {
      void this.request(id, { what: 'hello', server }).catch(() => undefined); // only `%tools doctor` would have named it
    }
    if (!known || topics.length) {
      this.emitChange(id, known && !topics.includes('hello') ? topics : ALL_TOPICS);
    }
  }

  private forget(id: string): void {
    if (this.known.delete(id)) {
      this.emitChange(id, ALL_TOPICS);
    }
  }

  private emitChange(kernelId: string, topics: readonly Topic[]): void {
    this.changed.emit({ kernelId, topics });
  }
}

/** The package that has the server run the cells of this page; nothing where the page runs them, or it is another. */
function cellServer(app: { hasPlugin?(id: string): boolean }): string {
  return serverRunsCells() && app.hasPlugin?.(SERVER_EXECUTOR) ? 'jupyter-server-documents' : '';
}

/** Code that uses the package: loads it, or has one of its main magics. Linear in its length: it may be of a stranger. */
const USES = /opencode_jupyter|^(?:[\w \t,.[\]'"*]*=)?[ \t]*%%?(?:tool|agent)\b/m;

/** Whether a code cell of the notebook uses the package. */
function usesTools(document: Opened): boolean {
  const cells = [...(document.content?.model?.cells ?? [])];
  return cells.some(({ sharedModel }) => sharedModel.cell_type === 'code' && USES.test(sharedModel.getSource()));
}

const plugin: JupyterFrontEndPlugin<KernelHub> = {
  id: 'opencode-jupyter:kernels',
  description: 'Provides the kernels of this page that have opencode_jupyter loaded.',
  autoStart: true,
  provides: IKernelHub,
  activate: (app: JupyterFrontEnd): KernelHub => new KernelHub(app)
};

export default plugin;
