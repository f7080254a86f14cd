/** The rows of a result as a small table. */

import { trans } from '../../i18n';
import { el } from '../dom';
import { grouped, visibleLine } from '../format';
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
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', trans.__('Rows of the result'));
  box.append(table);
  const all = grouped(total);
  const words =
    rows.length < total
      ? trans._n('the first %3 of %2 row', 'the first %3 of %2 rows', total, all, rows.length)
      : trans._n('%2 row', '%2 rows', total, all);
  host.replaceChildren(box, el('div', 'oc-why oc-caption', words));
}
