/** What calls come to: sums, and how long each tool's calls take, with a small histogram. */

import { el, scrollBox, setRole } from '../../card/dom';
import { duration, visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import type { CallRow } from './callLog';
import { open, stateOf, worked } from './callLog';

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
  const rows = [...groups].map(([tool, group]): ToolTotals => {
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
  return rows.sort((a, b) => b.worked - a.worked || (a.tool < b.tool ? -1 : 1));
}

/** What the bars of the histogram stand for. */
function bucketName(at: number): string {
  return at < BUCKETS.length ? trans.__('under %1', duration(BUCKETS[at])) : trans.__('longer');
}

/** The histogram in words. */
function histogramWords({ histogram }: ToolTotals): string {
  const parts = histogram.map((count, at) => (count ? `${bucketName(at)}: ${count}` : '')).filter(Boolean);
  return parts.join(', ') || trans.__('none has finished');
}

function histogram(tool: ToolTotals): HTMLElement {
  const node = el('span', 'oc-histogram');
  setRole(node, 'img', histogramWords(tool));
  node.title = histogramWords(tool);
  const most = Math.max(1, ...tool.histogram);
  for (const count of tool.histogram) {
    const bar = el('i', count ? '' : 'oc-none');
    bar.style.height = `${Math.max(count ? 12 : 4, (count / most) * 100)}%`;
    node.append(bar);
  }
  return node;
}

const COLUMNS = (): string[] => [
  trans.__('Tool'),
  trans.__('Calls'),
  trans.__('Failed'),
  trans.__('Time'),
  trans.__('Median'),
  trans.__('Waited'),
  trans.__('Durations')
];

/** The table, folded away at first. Where there is little room, each number has its column's name beside it. */
export class TotalsTable {
  readonly node = el('details', 'oc-totals');
  private readonly body = el('tbody');
  private drawn = '';

  constructor() {
    const table = el('table');
    const head = el('thead');
    const names = el('tr');
    for (const name of COLUMNS()) {
      const cell = el('th', '', name);
      cell.scope = 'col';
      names.append(cell);
    }
    head.append(names);
    table.append(head, this.body);
    const frame = el('div', 'oc-totals-frame');
    scrollBox(frame, trans.__('Totals per tool'), 'region');
    frame.append(table);
    this.node.append(el('summary', '', trans.__('Totals per tool')), frame);
  }

  update(calls: readonly CallRow[], now: number): void {
    const lines = totals(calls, now);
    const key = JSON.stringify(lines);
    if (key === this.drawn) {
      return;
    }
    this.drawn = key;
    const names = COLUMNS();
    this.body.replaceChildren(
      ...lines.map(tool => {
        const row = el('tr');
        const name = el('th', '', visibleLine(tool.tool));
        name.scope = 'row';
        row.append(name);
        const numbers = [String(tool.calls), String(tool.failed), duration(tool.worked), duration(tool.median), duration(tool.waited)];
        numbers.forEach((text, at) => {
          const cell = el('td', '', text);
          cell.dataset.name = names[at + 1];
          row.append(cell);
        });
        const last = el('td');
        last.append(histogram(tool));
        row.append(last);
        return row;
      })
    );
  }
}
