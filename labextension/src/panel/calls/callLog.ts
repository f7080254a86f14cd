/** The calls of a kernel as data: updated, filtered, ordered so that calls stand under the one that made them. */

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
  /** Start and end of each wait; null while it lasts. */
  waits: [number, number | null][];
  agent: string;
  by: string;
}

/** What a kernel replies. */
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

/** A call, and in how many others it was made. */
export interface NestedCall {
  call: CallRow;
  depth: number;
}

/** Whether it has not ended. */
export function isOpen(call: CallRow): boolean {
  return call.state === 'pending' || call.state === 'running';
}

/** Since when it waits for a person; undefined: it does not. */
export function waitingSince(call: CallRow): number | undefined {
  return isOpen(call) ? call.waits.find(([, to]) => to === null)?.[0] : undefined;
}

/** The outcome of a call; its state where it has none yet. */
export function outcomeOf(call: CallRow): string {
  return call.outcome || (waitingSince(call) === undefined ? call.state : 'waiting');
}

/** Milliseconds that it worked or works: from start to end without its waits for a person. */
export function workedMs(call: CallRow, now: number): number {
  const end = waitingSince(call) ?? call.end ?? (isOpen(call) ? now : call.start);
  return Math.max(0, end - call.start - call.waited);
}

/** The calls of one kernel. */
export class CallLog {
  readonly calls = new Map<string, CallRow>();
  readonly sessions = new Map<string, string>();
  since = 0;
  /** The kernel's clock less this page's. */
  skew = 0;

  /** Takes in a reply. */
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

/** Whether `call` fits all of `filter`. */
export function matches(call: CallRow, filter: Filter): boolean {
  const text = filter.text.toLowerCase();
  return (
    (!filter.tool || call.tool === filter.tool) &&
    (!filter.state || outcomeOf(call) === filter.state) &&
    (!filter.agent || call.agent === filter.agent) &&
    (!filter.session || call.session === filter.session) &&
    (!text || `${call.tool} ${call.title}`.toLowerCase().includes(text))
  );
}

/** The calls that match, by their start, each after the one it was made in, deeper by one. */
export function nestCalls(calls: Iterable<CallRow>, filter: Filter = NO_FILTER): NestedCall[] {
  const shown = [...calls].filter(call => matches(call, filter)).sort((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1));
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
  const nested: NestedCall[] = [];
  const left = (below.get('') ?? []).map((call): NestedCall => ({ call, depth: 0 })).reverse();
  for (let next = left.pop(); next; next = left.pop()) {
    const { call, depth } = next;
    nested.push(next);
    left.push(...(below.get(call.id) ?? []).map((inner): NestedCall => ({ call: inner, depth: depth + 1 })).reverse());
  }
  return nested;
}

/** The outermost call that `call` was made in. */
export function outermost(call: CallRow, calls: ReadonlyMap<string, CallRow>): CallRow {
  const outer = call.parent ? calls.get(call.parent) : undefined;
  return outer ? outermost(outer, calls) : call;
}

/** The different values of one field, in order, for a list to choose from. */
export function distinctValues(calls: Iterable<CallRow>, of: (call: CallRow) => string): string[] {
  return [...new Set([...calls].map(of))].filter(Boolean).sort();
}
