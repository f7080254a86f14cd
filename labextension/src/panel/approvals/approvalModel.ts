/** Everything that waits for a person in the kernels of this page, oldest first, updated when kernels say so. */

import { Signal } from '@lumino/signaling';

import type { CardAsk, CardPart, CardQuestions } from '../../card';
import type { KernelHub, OpenKernel } from '../../kernel/hub';

/** One permission request, or one set of questions, that is pending, as its kernel describes it. */
export interface PendingRequest {
  /** The request's id. */
  id: string;
  callID: string;
  /** The widget of its card in the notebook. */
  commID: string;
  /** What identifies that card: the id of the outermost call, or of the run. */
  key: string;
  agent?: string;
  /** The call's own card, with what is asked. */
  card?: CardPart;
}

/** The same with where it comes from. */
export interface Approval extends PendingRequest {
  kernelId: string;
  /** The notebook's name. */
  name: string;
}

/** What is requested: permission or answers. */
export function requestOf(approval: PendingRequest): CardAsk | CardQuestions | undefined {
  return approval.card?.ui.ask ?? approval.card?.ui.question;
}

/** Oldest first; by id where the clocks say the same. */
export function compareAge(a: PendingRequest, b: PendingRequest): number {
  return (requestOf(a)?.asked ?? 0) - (requestOf(b)?.asked ?? 0) || (a.id < b.id ? -1 : Number(a.id > b.id));
}

/** Equal for similar requests: the same tool, permission and patterns that "for this session" would allow. */
export function similarityKey(approval: PendingRequest): string {
  const ask = approval.card?.ui.ask;
  return ask ? JSON.stringify([approval.card?.tool, ask.permission, [...ask.always].sort()]) : approval.id;
}

/** The approvals of `all` that are similar to `approval`, itself included. */
export function similarTo(approval: PendingRequest, all: readonly Approval[]): Approval[] {
  const key = similarityKey(approval);
  return all.filter(other => similarityKey(other) === key);
}

/** The approval after `id`, round to the first; the first where `id` is not among them. */
export function nextAfter(all: readonly Approval[], id: string): Approval | undefined {
  return all[(all.findIndex(approval => approval.id === id) + 1) % Math.max(1, all.length)];
}

/** A kernel that did not answer is asked again after so long. */
const RETRY_MS = 2_000;

/** The approvals that one page waits for. */
export class ApprovalModel {
  /** Emitted with the approvals that are new. */
  readonly changed = new Signal<ApprovalModel, Approval[]>(this);
  private readonly pending = new Map<string, PendingRequest[]>();
  private readonly rounds = new Map<string, number>();

  constructor(private readonly hub: KernelHub) {
    hub.changed.connect((_, { kernelId, topics }) => {
      if (topics.includes('asks')) {
        void this.read(kernelId);
      }
    });
  }

  /** All that waits, oldest first. */
  approvals(): Approval[] {
    return this.hub.kernels().flatMap(kernel => this.pendingIn(kernel)).sort(compareAge);
  }

  private pendingIn({ id, name }: OpenKernel): Approval[] {
    return (this.pending.get(id) ?? []).map(approval => ({ ...approval, kernelId: id, name }));
  }

  /** Reads what waits in one kernel. Only the answer to the newest question counts: answers may overtake each other. */
  private async read(kernelId: string): Promise<void> {
    const round = (this.rounds.get(kernelId) ?? 0) + 1;
    this.rounds.set(kernelId, round);
    const before = new Set((this.pending.get(kernelId) ?? []).map(({ id }) => id));
    let pending: PendingRequest[] = [];
    if (this.hub.kernels().some(({ id }) => id === kernelId)) {
      try {
        pending = (await this.hub.request<{ asks: PendingRequest[] }>(kernelId, { what: 'asks' })).asks;
      } catch (error) {
        console.debug('opencode-jupyter: the pending requests of a kernel could not be read', error);
        // what was known is still pending; a kernel that was too busy sends no notification when it no longer is
        setTimeout(() => this.rounds.get(kernelId) === round && void this.read(kernelId), RETRY_MS);
        return;
      }
    }
    if (this.rounds.get(kernelId) === round) {
      this.pending.set(kernelId, pending);
      this.changed.emit(this.approvals().filter(({ kernelId: of, id }) => of === kernelId && !before.has(id)));
    }
  }
}
