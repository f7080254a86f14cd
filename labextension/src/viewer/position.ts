/** Where in the file a viewer is, in words and among its rows. */

import { grouped, lineCount, size } from '../card/format';
import { trans } from '../card/i18n';
import type { Rows } from './rows';

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
  const line = number === null ? `~${grouped(rows.guessLine(rows.rows[top]?.offset ?? 0))}` : grouped(number);
  const bytes = size(extent.bytes);
  if (extent.total !== null) {
    return trans.__('line %1 of %2', line, `${lineCount(extent.total)}, ${bytes}`);
  }
  const words = trans.__('line %1 of %2', line, bytes);
  const counted = Math.floor((100 * extent.counted) / Math.max(1, extent.bytes));
  return extent.bytes ? `${words} · ${trans.__('lines counted to %1 %', counted)}` : words;
}
