/** The rows of a result as a small table. */

import { el } from '../dom';
import { count, visibleLine } from '../format';
import { markPath } from '../links';
import type { CardTable } from '../token';

/** Columns whose cells are files. */
const PATHS = ['path', 'file', 'filePath', 'uri'];
const NUMBER = /^-?[\d.,]+$/;

/** Draws `table` into `host`, replacing what is there. */
export function drawTable(host: HTMLElement, { columns, rows, total }: CardTable): void {
  const table = el('table', 'oc-table');
  const head = el('tr');
  head.append(...columns.map(name => el('th', '', visibleLine(name))));
  const numeric = columns.map((_, at) => rows.length > 0 && rows.every(row => !row[at] || NUMBER.test(row[at])));
  const lineAt = columns.indexOf('line');
  const top = el('thead');
  top.append(head);
  const body = el('tbody');
  for (const row of rows) {
    const line = el('tr');
    line.append(
      ...columns.map((name, at) => {
        const cell = el('td', numeric[at] ? 'oc-number' : '', visibleLine(row[at] ?? ''));
        if (PATHS.includes(name)) {
          markPath(cell, row[at] ?? '', Number(row[lineAt]) || undefined);
        }
        return cell;
      })
    );
    body.append(line);
  }
  table.append(top, body);
  const box = el('div', 'oc-tablebox');
  box.tabIndex = 0;
  box.append(table);
  const words = rows.length < total ? `the first ${rows.length} of ${count(total, 'row')}` : count(total, 'row');
  host.replaceChildren(box, el('div', 'oc-why oc-caption', words));
}
