/** The totals of calls: sums, and how long each tool's calls take, with a small histogram. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { duration, visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import type { CallRow } from './callLog';
import { isOpen, outcomeOf, workedMs } from './callLog';

/** Upper ends of the histogram's bars, in milliseconds; the last bar has none. */
export const BUCKETS: readonly number[] = [10, 100, 1_000, 10_000, 60_000];

export interface ToolTotals {
  tool: string;
  calls: number;
  /** How many ended by an error, a denial or a stop. */
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
    const ended = group.filter(call => !isOpen(call));
    const times = ended.map(call => workedMs(call, now));
    const histogram = [...BUCKETS, Infinity].map((end, at) => times.filter(t => t < end && t >= (BUCKETS[at - 1] ?? 0)).length);
    return {
      tool,
      calls: group.length,
      failed: ended.filter(call => outcomeOf(call) !== 'completed').length,
      open: group.length - ended.length,
      worked: group.reduce((sum, call) => sum + workedMs(call, now), 0),
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

function Histogram({ tool }: { tool: ToolTotals }): ReactElement {
  const words = histogramWords(tool);
  const most = Math.max(1, ...tool.histogram);
  return (
    <span className="oc-histogram" role="img" aria-label={words} title={words}>
      {tool.histogram.map((count, index) => (
        <i key={index} className={count ? '' : 'oc-none'} style={{ height: `${Math.max(count ? 12 : 4, (count / most) * 100)}%` }} />
      ))}
    </span>
  );
}

/** The table, folded away at first. Where there is little room, each number has its column's name beside it. */
export function TotalsTable({ calls, now }: { calls: readonly CallRow[]; now: number }): ReactElement {
  const columns: [string, (tool: ToolTotals) => string][] = [
    [trans.__('Calls'), tool => String(tool.calls)],
    [trans.__('Failed'), tool => String(tool.failed)],
    [trans.__('Time'), tool => duration(tool.worked)],
    [trans.__('Median'), tool => duration(tool.median)],
    [trans.__('Waited'), tool => duration(tool.waited)]
  ];
  return (
    <details className="oc-totals">
      <summary>{trans.__('Totals per tool')}</summary>
      <div className="oc-totals-frame" role="region" tabIndex={0} aria-label={trans.__('Totals per tool')}>
        <table>
          <thead>
            <tr>
              {[trans.__('Tool'), ...columns.map(([name]) => name), trans.__('Durations')].map(name => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {totals(calls, now).map(tool => (
              <tr key={tool.tool}>
                <th scope="row">{visibleLine(tool.tool)}</th>
                {columns.map(([name, text]) => (
                  <td key={name} data-name={name}>
                    {text(tool)}
                  </td>
                ))}
                <td>
                  <Histogram tool={tool} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
