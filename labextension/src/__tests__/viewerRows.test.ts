import { KEPT_BYTES, KEPT_ROWS, Rows } from '../viewer/rows';
import type { Extent, Page } from '../viewer/source';

const WIDTH = 10;
const EXTENT: Extent = { bytes: 50_000, counted: 50_000, newlines: 5000, total: 5000, writing: false, file: '1:1' };

test('rows keep their numbers when some are dropped at either end', () => {
  const page = (from: number, count: number): Page => ({
    ...EXTENT, first: from, lines: Array(count).fill('x'), offsets: Array.from({ length: count }, (_, i) => (from + i) * WIDTH),
    inside: count > 2 ? [1] : [], end: (from + count) * WIDTH, more: true, style: ''
  });
  const held = new Rows();
  held.replace(page(1, 4));
  expect(held.labels()).toEqual(['1', '', '2', '3']);
  expect([held.number(1), held.number(3)]).toEqual([1, 3]);
  held.append(page(5, KEPT_ROWS - 1));
  expect(held.rows).toHaveLength(KEPT_ROWS);
  expect(held.first).toBe(3);
  expect(held.labels().slice(0, 4)).toEqual(['3', '4', '', '5']);
});

test('long lines are kept up to a number of bytes, at either end, and the rows that came last always', () => {
  const long = KEPT_BYTES / 8;
  const page = (from: number, count: number, length = long): Page => ({
    ...EXTENT, first: from + 1, lines: Array(count).fill('x'), offsets: Array.from({ length: count }, (_, i) => (from + i) * length),
    inside: [], end: (from + count) * length, more: true, style: ''
  });
  const held = new Rows();
  held.replace(page(20, 6));
  expect(held.append(page(26, 6))).toBe(4);
  expect([held.start, held.end, held.first]).toEqual([24 * long, 32 * long, 25]);
  expect(held.prepend(page(18, 6))).toBe(6);
  expect([held.start, held.end, held.first, held.more]).toEqual([18 * long, 26 * long, 19, true]);
  held.replace(page(0, 2));
  expect(held.append(page(2, 20))).toBe(2);
  expect(held.rows).toHaveLength(20);
});
