/** What calls come to: sums, and how long each tool's calls take. */

import type { CallRow } from './log';
import { open, stateOf, worked } from './log';

/** Upper ends of the histogram's bars, in milliseconds; the last bar has none. */
export const BUCKETS: readonly number[] = [10, 100, 1_000, 10_000, 60_000];

export interface ToolTotals {
  tool: string;
  calls: number;
  /** How many ended by an error, a refusal or a stop. */
  failed: number;
  open: number;
  /** Milliseconds of work, and of waiting for a person. */
  worked: number;
  waited: number;
  /** Of the ended calls' work. */
  median: number;
  /** Ended calls by how long they worked, one number for each bucket and one for what is longer. */
  histogram: number[];
}

/** The middle of `numbers`; 0 of none. */
export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length ? (sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2) : 0;
}

/** One line for each tool, the one that worked longest first. */
export function totals(calls: Iterable<CallRow>, now: number): ToolTotals[] {
  const groups = new Map<string, CallRow[]>();
  for (const call of calls) {
    const group = groups.get(call.tool);
    if (group) {
      group.push(call);
    } else {
      groups.set(call.tool, [call]);
    }
  }
  const found = [...groups].map(([tool, group]): ToolTotals => {
    const ended = group.filter(call => !open(call));
    const times = ended.map(call => worked(call, now));
    const histogram = [...BUCKETS, Infinity].map((end, at) => times.filter(t => t < end && t >= (BUCKETS[at - 1] ?? 0)).length);
    return {
      tool,
      calls: group.length,
      failed: ended.filter(call => stateOf(call) !== 'completed').length,
      open: group.length - ended.length,
      worked: group.reduce((sum, call) => sum + worked(call, now), 0),
      waited: group.reduce((sum, call) => sum + call.waited, 0),
      median: median(times),
      histogram
    };
  });
  return found.sort((a, b) => b.worked - a.worked || (a.tool < b.tool ? -1 : 1));
}
