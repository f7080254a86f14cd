/** Everything that waits for a person in the kernels of this page, oldest first, kept up with what kernels nudge. */

import { Signal } from '@lumino/signaling';

import type { CardAsk, CardPart, CardQuestions } from '../../card';
import type { KernelHub, OpenKernel } from '../../kernel/hub';

/** One ask or question that waits, as its kernel tells it. */
export interface PendingRequest {
  /** The request's id. */
  id: string;
  callID: string;
  /** The widget of its card in the notebook. */
  commID: string;
  /** What that card goes by: the id of the outermost call, or of the run. */
  key: string;
  agent?: string;
  /** The call's own card, with the ask. */
  card?: CardPart;
}

/** The same with where it comes from. */
export interface Entry extends PendingRequest {
  kernelId: string;
  /** The notebook's name. */
  name: string;
}

/** What is asked: permission or questions. */
export function asked(entry: PendingRequest): CardAsk | CardQuestions | undefined {
  return entry.card?.ui.ask ?? entry.card?.ui.question;
}

/** Oldest first; by id where the clocks say the same. */
export function byAge(a: PendingRequest, b: PendingRequest): number {
  return (asked(a)?.asked ?? 0) - (asked(b)?.asked ?? 0) || (a.id < b.id ? -1 : Number(a.id > b.id));
}

/** What makes two asks alike: the same tool, permission and patterns that "for this session" would allow. */
export function likeness(entry: PendingRequest): string {
  const ask = entry.card?.ui.ask;
  return ask ? JSON.stringify([entry.card?.tool, ask.permission, [...ask.always].sort()]) : entry.id;
}

/** The asks of `all` that are like `entry`, itself included. */
export function alike(entry: PendingRequest, all: readonly Entry[]): Entry[] {
  const kind = likeness(entry);
  return all.filter(other => likeness(other) === kind);
}

/** The entry after `id`, round to the first; the first where `id` is not among them. */
export function after(all: readonly Entry[], id: string): Entry | undefined {
  return all[(all.findIndex(entry => entry.id === id) + 1) % Math.max(1, all.length)];
}

/** A kernel that did not answer is asked again after so long. */
const AGAIN_MS = 2_000;

/** The approvals that one page waits for. */
export class ApprovalModel {
  /** Emitted with the asks that are new. */
  readonly changed = new Signal<ApprovalModel, Entry[]>(this);
  private readonly waiting = new Map<string, PendingRequest[]>();
  private readonly rounds = new Map<string, number>();

  constructor(private readonly hub: KernelHub) {
    hub.changed.connect((_, { kernelId, topics }) => {
      if (topics.includes('asks')) {
        void this.read(kernelId);
      }
    });
  }

  /** All that waits, oldest first. */
  entries(): Entry[] {
    const entries = this.hub.kernels().flatMap(kernel => this.of(kernel));
    return entries.sort(byAge);
  }

  private of({ id, name }: OpenKernel): Entry[] {
    return (this.waiting.get(id) ?? []).map(entry => ({ ...entry, kernelId: id, name }));
  }

  /** Reads what waits in one kernel. Only the answer to the newest question counts: answers may overtake each other. */
  private async read(kernelId: string): Promise<void> {
    const round = (this.rounds.get(kernelId) ?? 0) + 1;
    this.rounds.set(kernelId, round);
    const before = new Set((this.waiting.get(kernelId) ?? []).map(({ id }) => id));
    let waiting: PendingRequest[] = [];
    if (this.hub.kernels().some(({ id }) => id === kernelId)) {
      try {
        waiting = (await this.hub.request<{ asks: PendingRequest[] }>(kernelId, { what: 'asks' })).asks;
      } catch (error) {
        console.debug('opencode-jupyter: the asks of a kernel could not be read', error);
        // what was known waits still; a kernel that was too busy nudges nobody when it is no more
        setTimeout(() => this.rounds.get(kernelId) === round && void this.read(kernelId), AGAIN_MS);
        return;
      }
    }
    if (this.rounds.get(kernelId) === round) {
      this.waiting.set(kernelId, waiting);
      this.changed.emit(this.entries().filter(({ kernelId: of, id }) => of === kernelId && !before.has(id)));
    }
  }
}
