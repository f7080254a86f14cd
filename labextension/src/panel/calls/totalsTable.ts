/** The table of totals, with a small histogram of each tool's times. */

import { el } from '../../card/dom';
import { duration, visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import type { CallRow } from './log';
import { BUCKETS, totals } from './totals';
import type { ToolTotals } from './totals';

/** What the bars of the histogram stand for. */
export function bucketName(at: number): string {
  return at < BUCKETS.length ? trans.__('under %1', duration(BUCKETS[at])) : trans.__('longer');
}

/** The histogram in words. */
export function histogramWords({ histogram }: ToolTotals): string {
  const parts = histogram.map((count, at) => (count ? `${bucketName(at)}: ${count}` : '')).filter(Boolean);
  return parts.join(', ') || trans.__('none has finished');
}

function histogram(tool: ToolTotals): HTMLElement {
  const node = el('span', 'oc-histogram');
  node.setAttribute('role', 'img');
  node.setAttribute('aria-label', histogramWords(tool));
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
    frame.tabIndex = 0;
    frame.setAttribute('role', 'region');
    frame.setAttribute('aria-label', trans.__('Totals per tool'));
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
