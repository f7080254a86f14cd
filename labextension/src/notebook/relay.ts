/**
 * Hands jobs on to other pages of this browser on the same server. A notebook in another tab is connected to another
 * kernel (in Notebook 7 each has a tab of its own), so it receives nothing from the one that asks.
 */

import type { Answer, Job } from './protocol';

/** How long other pages may take to say what they have open; one that is still loading is slow. */
export const FIND_MS = 1_000;
/** A page that was silent so often is gone: closed tabs say so, crashed ones do not. */
const SILENT = 2;
/** How long another page may take to do what it is told. */
const JOB_MS = 10_000;

interface PageMessage {
  kind: 'hello' | 'here' | 'bye' | 'job' | 'answer';
  from: string;
  to?: string;
  id?: string;
  kernel?: string;
  job?: Job;
  answer?: Answer;
}

/** What is needed of a `BroadcastChannel`. */
export interface Channel {
  postMessage(letter: unknown): void;
  onmessage: ((event: MessageEvent) => void) | null;
}

/** Does a job here. */
type Perform = (job: Job, kernelId: string) => Promise<Answer>;

/** This page among the others. */
export class Relay {
  /** How often each other page was silent. */
  private readonly others = new Map<string, number>();
  private readonly waiting = new Map<string, (from: string, answer: Answer) => void>();
  private count = 0;

  /**
   * @param page - this page's id.
   * @param channel - reaches all pages.
   * @param perform - does here what another page hands on.
   */
  constructor(
    private readonly page: string,
    private readonly channel: Channel,
    private readonly perform: Perform
  ) {
    channel.onmessage = ({ data }) => void this.receive(data as PageMessage);
    this.post({ kind: 'hello' });
  }

  /** Says that this page is going. */
  leave(): void {
    this.post({ kind: 'bye' });
  }

  /** The answers of the other pages to a job for all; those that stay silent are forgotten. */
  async askAll(job: Job, kernel: string): Promise<Answer[]> {
    const left = new Set(this.others.keys());
    if (!left.size) {
      return [];
    }
    const answers: Answer[] = [];
    await this.ask({ job, kernel }, FIND_MS, (from, answer) => {
      answers.push(answer);
      left.delete(from);
      return !left.size;
    });
    for (const page of left) {
      const silent = (this.others.get(page) ?? 0) + 1;
      this.others.set(page, silent);
      if (silent >= SILENT) {
        this.others.delete(page);
      }
    }
    return answers;
  }

  /** The answer of one other page. */
  async askOne(page: string, job: Job, kernel: string): Promise<Answer> {
    if (!this.others.has(page)) {
      return { error: 'closed' };
    }
    let reply: Answer = { error: 'lost' };
    await this.ask({ job, kernel, to: page }, JOB_MS, (_, answer) => {
      reply = answer;
      return true;
    });
    return reply;
  }

  private ask(letter: Partial<PageMessage>, ms: number, take: (from: string, answer: Answer) => boolean): Promise<void> {
    const id = `${this.page}-${++this.count}`;
    return new Promise(resolve => {
      const end = (): void => {
        clearTimeout(timer);
        this.waiting.delete(id);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.waiting.set(id, (from, answer) => {
        if (take(from, answer)) {
          end();
        }
      });
      this.post({ kind: 'job', id, ...letter });
    });
  }

  private async receive(letter: PageMessage): Promise<void> {
    const { kind, from, to, id } = letter;
    if (kind === 'bye') {
      this.others.delete(from);
      return;
    }
    this.others.set(from, 0);
    if (kind === 'hello') {
      this.post({ kind: 'here' });
    } else if (kind === 'answer' && to === this.page) {
      this.waiting.get(id ?? '')?.(from, letter.answer ?? {});
    } else if (kind === 'job' && letter.job && (!to || to === this.page)) {
      const answer = await this.perform(letter.job, letter.kernel ?? '').catch(error => ({ error: String(error) }));
      this.post({ kind: 'answer', to: from, id, answer });
    }
  }

  private post(letter: Omit<PageMessage, 'from'>): void {
    this.channel.postMessage({ ...letter, from: this.page });
  }
}
