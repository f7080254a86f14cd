/** Hears the nudges of the kernels that this page is connected to, and does their jobs. */

import type { Kernel } from '@jupyterlab/services';

import { MESSAGE_TYPE } from '../kernel/requests';
import type { Documents } from './documents';
import { KIND } from './protocol';
import type { Answer, Job, Nudge, Taken, Word } from './protocol';
import type { Relay } from './relay';

/** Nudges that are remembered: one kernel may be heard by several connections of a page. */
const REMEMBERED = 200;

type Connection = Kernel.IKernelConnection;

/** What is needed of a document's session. */
export interface Session {
  session?: { kernel?: Connection | null } | null;
  iopubMessage: { connect(slot: (sender: unknown, message: unknown) => void): unknown };
}

/** A request on a kernel's control channel. */
export type Request = (kernel: Connection, word: Word) => Promise<unknown>;

/** One page's ear. */
export class Listener {
  private readonly sessions = new WeakSet<Session>();
  private readonly heard = new Set<string>();

  constructor(
    private readonly documents: Documents,
    private readonly relay: Relay,
    private readonly request: Request
  ) {}

  /** Listens to a session from now on, whichever kernel it has. */
  listen(session: Session): void {
    if (this.sessions.has(session)) {
      return;
    }
    this.sessions.add(session);
    session.iopubMessage.connect((_, message) => {
      const { header, content } = message as { header: { msg_type: string }; content: Nudge };
      const kernel = session.session?.kernel;
      if (header.msg_type === MESSAGE_TYPE && content.kind === KIND && kernel) {
        void this.nudged(kernel, content).catch(() => undefined); // the kernel went away, and with it who waits
      }
    });
  }

  private async nudged(kernel: Connection, { id, page }: Nudge): Promise<void> {
    const self = this.documents.page;
    if ((page && page !== self) || (id && this.heard.has(id))) {
      return;
    }
    if (id) {
      this.heard.add(id);
      if (this.heard.size > REMEMBERED) {
        this.heard.delete(this.heard.values().next().value as string);
      }
    }
    const { job } = (await this.request(kernel, { kind: KIND, step: 'take', id, page: self })) as Taken;
    if (job) {
      const answer = await this.perform(job, kernel.id).catch(error => ({ error: String(error) }));
      await this.request(kernel, { kind: KIND, step: 'done', id, page: self, answer });
    }
  }

  private async perform(job: Job, kernelId: string): Promise<Answer> {
    if (job.op !== 'find') {
      const here = job.page === this.documents.page;
      return here ? this.documents.perform(job, kernelId) : this.relay.askOne(job.page, job, kernelId);
    }
    const [own, others] = await Promise.all([this.documents.perform(job, kernelId), this.relay.askAll(job, kernelId)]);
    return { documents: [own, ...others].flatMap(answer => answer.documents ?? []) };
  }
}
