/** Takes the jobs that the kernels of this page offer, and does them. */

import type { Kernel } from '@jupyterlab/services';

import type { KernelHub } from '../kernel/hub';
import { requestKernel } from '../kernel/requests';
import type { Documents } from './documents';
import { KIND } from './protocol';
import type { Answer, Job, Offer, TakeReply, JobMessage } from './protocol';
import type { Relay } from './relay';

/** Offers that are remembered: a page may receive one over several connections to its kernel. */
const REMEMBERED = 200;

/** Does the jobs that `hub` receives from now on; `request` is for tests. */
export function performJobs(
  hub: Pick<KernelHub, 'received'>,
  documents: Documents,
  relay: Relay,
  request: (kernel: Kernel.IKernelConnection, word: JobMessage) => Promise<unknown> = requestKernel
): void {
  const { page: self } = documents;
  const received = new Set<string>();

  const perform = async (job: Job, kernelId: string): Promise<Answer> => {
    if (job.op !== 'find') {
      return job.page === self ? documents.perform(job, kernelId) : relay.askOne(job.page, job, kernelId);
    }
    const [own, others] = await Promise.all([documents.perform(job, kernelId), relay.askAll(job, kernelId)]);
    return { documents: [own, ...others].flatMap(answer => answer.documents ?? []) };
  };

  const take = async (kernel: Kernel.IKernelConnection, { id, page }: Offer): Promise<void> => {
    if ((page && page !== self) || (id && received.has(id))) {
      return;
    }
    if (id) {
      received.add(id);
      if (received.size > REMEMBERED) {
        received.delete(received.values().next().value as string);
      }
    }
    const { job } = (await request(kernel, { kind: KIND, step: 'take', id, page: self })) as TakeReply;
    if (job) {
      const answer = await perform(job, kernel.id).catch(error => ({ error: String(error) }));
      await request(kernel, { kind: KIND, step: 'done', id, page: self, answer });
    }
  };

  hub.received.connect((_, { kernel, content }) => {
    if (content.kind === KIND) {
      void take(kernel, content as Offer).catch(() => undefined); // the kernel went away, and with it who waits
    }
  });
}
