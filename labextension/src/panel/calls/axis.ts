/** Positions on the time axis; time in which nothing happens takes little room, if it is to be folded. */

import type { CallRow } from './callLog';
import { isOpen } from './callLog';

/** The part of the axis that a folded gap takes. */
const GAP = 0.02;
/** Gaps longer than this part of the busy time are folded. */
const LONG = 0.1;

/** A stretch of time and where it lies on the axis, from 0 to 1. */
interface Stretch {
  from: number;
  to: number;
  low: number;
  high: number;
}

/** The times in which some call was open, in order. */
export function busySpans(calls: readonly CallRow[], now: number): [number, number][] {
  const spans = calls
    .map((call): [number, number] => [call.start, Math.max(call.start + 1, call.end ?? (isOpen(call) ? now : call.start))])
    .sort((a, b) => a[0] - b[0]);
  const merged: [number, number][] = [];
  for (const [from, to] of spans) {
    const last = merged[merged.length - 1];
    if (last && from <= last[1]) {
      last[1] = Math.max(last[1], to);
    } else {
      merged.push([from, to]);
    }
  }
  return merged;
}

/** One axis. */
export class Axis {
  private readonly stretches: Stretch[] = [];
  readonly from: number;
  readonly to: number;

  constructor(calls: readonly CallRow[], now: number, fold = true) {
    const spans = busySpans(calls, now);
    this.from = spans[0]?.[0] ?? now;
    this.to = spans[spans.length - 1]?.[1] ?? now + 1;
    const total = spans.reduce((sum, [from, to]) => sum + to - from, 0);
    const long = fold ? Math.max(total * LONG, 1) : Infinity;
    const pieces: { from: number; to: number; gap: boolean }[] = [];
    for (const [from, to] of spans) {
      const last = pieces[pieces.length - 1];
      if (last && from - last.to > long) {
        pieces.push({ from: last.to, to: from, gap: true }, { from, to, gap: false });
      } else if (last) {
        last.to = to;
      } else {
        pieces.push({ from, to, gap: false });
      }
    }
    const gaps = pieces.filter(({ gap }) => gap).length;
    const gap = gaps ? Math.min(GAP, 0.5 / gaps) : 0;
    const time = pieces.reduce((sum, piece) => sum + (piece.gap ? 0 : piece.to - piece.from), 0) || 1;
    let low = 0;
    for (const piece of pieces) {
      const high = low + (piece.gap ? gap : ((1 - gap * gaps) * (piece.to - piece.from)) / time);
      this.stretches.push({ from: piece.from, to: piece.to, low, high });
      low = high;
    }
  }

  /** Where `time` stands, from 0 to 1. */
  at(time: number): number {
    let [first, last] = [0, this.stretches.length - 1];
    if (last < 0) {
      return 0;
    }
    while (first < last) {
      const middle = (first + last + 1) >> 1;
      if (this.stretches[middle].from <= time) {
        first = middle;
      } else {
        last = middle - 1;
      }
    }
    const { from, to, low, high } = this.stretches[first];
    const part = to > from ? (time - from) / (to - from) : 0;
    return low + (high - low) * Math.min(1, Math.max(0, part));
  }
}
