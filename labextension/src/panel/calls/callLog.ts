/** The calls of kernels as data: brought up to date, told apart, ordered so that calls stand under the one that made them. */

/** One call, as the kernel's store has it. Times in milliseconds since 1970, by the kernel's clock. */
export interface CallRow {
  id: string;
  /** The part inside which it was made. */
  parent: string | null;
  session: string;
  tool: string;
  state: string;
  outcome: string;
  title: string;
  start: number;
  end: number | null;
  /** Milliseconds that it waited for a person. */
  waited: number;
  /** Begin and end of each wait; the end of one that goes on is null. */
  waits: [number, number | null][];
  agent: string;
  by: string;
}

/** What a kernel answers. */
export interface CallsReply {
  calls: CallRow[];
  /** Where to go on. */
  since: number;
  sessions: Record<string, { title: string; parent: string | null }>;
  now: number;
}

/** A person's choice of calls; empty: all. */
export interface Filter {
  tool: string;
  state: string;
  agent: string;
  session: string;
  text: string;
}

export const NO_FILTER: Readonly<Filter> = { tool: '', state: '', agent: '', session: '', text: '' };

/** A call in its place: how deep it stands. */
export interface Placed {
  call: CallRow;
  depth: number;
}

/** Whether it has not ended. */
export function open(call: CallRow): boolean {
  return call.state === 'pending' || call.state === 'running';
}

/** Since when it waits for a person; undefined: it does not. */
export function waiting(call: CallRow): number | undefined {
  return open(call) ? call.waits.find(([, to]) => to === null)?.[0] : undefined;
}

/** What a call came to, in one word: its outcome where it has one, else its state. */
export function stateOf(call: CallRow): string {
  return call.outcome || (waiting(call) === undefined ? call.state : 'waiting');
}

/** Milliseconds that it worked or works: from start to end without its waits for a person. */
export function worked(call: CallRow, now: number): number {
  const end = waiting(call) ?? call.end ?? (open(call) ? now : call.start);
  return Math.max(0, end - call.start - call.waited);
}

/** The calls of one kernel. */
export class CallLog {
  readonly calls = new Map<string, CallRow>();
  readonly sessions = new Map<string, string>();
  since = 0;
  /** The kernel's clock less this page's. */
  skew = 0;

  /** Takes an answer in. */
  update(reply: CallsReply): void {
    for (const call of reply.calls) {
      this.calls.set(call.id, call);
    }
    for (const [id, { title }] of Object.entries(reply.sessions)) {
      this.sessions.set(id, title);
    }
    this.since = reply.since;
    this.skew = reply.now - Date.now();
  }
}

/** Whether `call` is among what `filter` chooses. */
export function chosen(call: CallRow, filter: Filter): boolean {
  const text = filter.text.toLowerCase();
  return (
    (!filter.tool || call.tool === filter.tool) &&
    (!filter.state || stateOf(call) === filter.state) &&
    (!filter.agent || call.agent === filter.agent) &&
    (!filter.session || call.session === filter.session) &&
    (!text || `${call.tool} ${call.title}`.toLowerCase().includes(text))
  );
}

/** The chosen calls by their start, each after the one it was made in, deeper by one. */
export function nest(calls: Iterable<CallRow>, filter: Filter = NO_FILTER): Placed[] {
  const shown = [...calls].filter(call => chosen(call, filter)).sort((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1));
  const known = new Set(shown.map(({ id }) => id));
  const below = new Map<string, CallRow[]>();
  for (const call of shown) {
    const key = call.parent && known.has(call.parent) ? call.parent : '';
    const siblings = below.get(key);
    if (siblings) {
      siblings.push(call);
    } else {
      below.set(key, [call]);
    }
  }
  const placed: Placed[] = [];
  const left = (below.get('') ?? []).map((call): Placed => ({ call, depth: 0 })).reverse();
  for (let next = left.pop(); next; next = left.pop()) {
    const { call, depth } = next;
    placed.push(next);
    left.push(...(below.get(call.id) ?? []).map((inner): Placed => ({ call: inner, depth: depth + 1 })).reverse());
  }
  return placed;
}

/** The outermost call that `call` was made in. */
export function outermost(call: CallRow, calls: ReadonlyMap<string, CallRow>): CallRow {
  const outer = call.parent ? calls.get(call.parent) : undefined;
  return outer ? outermost(outer, calls) : call;
}

/** The different values of one field, in order, for a list to choose from. */
export function values(calls: Iterable<CallRow>, of: (call: CallRow) => string): string[] {
  return [...new Set([...calls].map(of))].filter(Boolean).sort();
}
