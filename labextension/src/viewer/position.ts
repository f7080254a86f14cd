/** Where in the file a viewer is, in words and among its rows. */

import { size } from '../card/format';
import { trans } from '../card/i18n';
import type { Rows } from './rows';

/** A number of lines, grouped. */
export const formatNumber = (n: number): string => n.toLocaleString('en-US');

/** The index of the first of the elements of `text` that is in view. */
export function firstVisibleRow(text: HTMLElement): number {
  const rows = text.children;
  const top = text.scrollTop;
  let low = 0;
  for (let high = rows.length - 1; low < high; ) {
    const middle = (low + high) >> 1;
    const row = rows[middle] as HTMLElement;
    if (top > 0 && row.offsetTop + row.offsetHeight <= top) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** "line 1,000 of 2,000 lines, 1.2 MB": the line of row `top`, nearly so where it was not counted. */
export function positionText(rows: Rows, top: number): string {
  const { extent } = rows;
  const number = rows.number(top);
  const line = number === null ? `~${formatNumber(rows.guessLine(rows.rows[top]?.offset ?? 0))}` : formatNumber(number);
  const bytes = size(extent.bytes);
  if (extent.total !== null) {
    return trans.__('line %1 of %2', line, `${trans._n('%1 line', '%2 lines', extent.total, formatNumber(extent.total))}, ${bytes}`);
  }
  const words = trans.__('line %1 of %2', line, bytes);
  const counted = Math.floor((100 * extent.counted) / Math.max(1, extent.bytes));
  return extent.bytes ? `${words} · ${trans.__('lines counted to %1 %', counted)}` : words;
}
