/** The rows of a result as a small table. */

import { trans } from '../i18n';
import { el, scrollBox } from '../dom';
import { grouped, visibleLine } from '../format';
import { markPath } from '../pathLinks';
import type { CardTable } from '../types';

/** Columns whose cells are files. */
const PATHS = ['path', 'file', 'filePath', 'uri'];
const NUMBER = /^(-?[\d.,]+(e[+-]?\d+)?|-?inf|nan|nat|<na>)$/i;

/** Draws each of `tables` into a block of its own in `host`, replacing what is there. */
export function drawTables(host: HTMLElement, tables: CardTable[]): void {
  host.replaceChildren(
    ...tables.map(shown => {
      const block = el('div', 'oc-tabled');
      block.append(...tableNodes(shown));
      return block;
    })
  );
}

function tableNodes(shown: CardTable): HTMLElement[] {
  const { columns, rows, types = [], index = 0 } = shown;
  const table = el('table', 'oc-table');
  const titled = columns.some(Boolean);
  const numeric = columns.map((_, at) => titled && rows.some(row => row[at]) && rows.every(row => !row[at] || NUMBER.test(row[at])));
  const lineAt = columns.indexOf('line');
  if (titled) {
    const head = el('tr');
    head.append(
      ...columns.map((name, at) => {
        const title = el(name ? 'th' : 'td', numeric[at] ? 'oc-right' : '', visibleLine(name));
        if (types.some(Boolean)) {
          title.append(el('div', 'oc-type', visibleLine(types[at] ?? '')));
        }
        return title;
      })
    );
    const top = el('thead');
    top.append(head);
    table.append(top);
  }
  const body = el('tbody');
  for (const row of rows) {
    const line = el('tr');
    line.append(
      ...columns.map((name, at) => {
        const cell = el(at < index ? 'th' : 'td', numeric[at] ? 'oc-number' : '', visibleLine(row[at] ?? ''));
        if (at < index) {
          cell.setAttribute('scope', 'row');
        }
        if (PATHS.includes(name)) {
          markPath(cell, row[at] ?? '', Number(row[lineAt]) || undefined);
        }
        return cell;
      })
    );
    body.append(line);
  }
  table.append(body);
  const box = el('div', 'oc-tablebox');
  scrollBox(box, trans.__('Rows of the result'));
  box.append(table);
  const words = caption(shown, titled);
  return words ? [box, el('div', 'oc-why oc-caption', words)] : [box];
}

/** What is shown of how much: `DataFrame · the first 50 of 214 rows, 20 of 64 columns`. */
function caption({ name, columns, rows, total, width = 0, index = 0 }: CardTable, titled: boolean): string {
  const all = grouped(total);
  const drawn = columns.length - index;
  let words = '';
  if (rows.length < total) {
    words = trans._n('the first %3 of %2 row', 'the first %3 of %2 rows', total, all, rows.length);
  } else if (titled) {
    words = trans._n('%2 row', '%2 rows', total, all);
  }
  if (titled && width > drawn) {
    words += trans.__(', %1 of %2 columns', drawn, grouped(width));
  }
  return [visibleLine(name ?? ''), words].filter(Boolean).join(' · ');
}
