/** Draws a diff: in one column or side by side, with line numbers, changed words marked, and words for screen readers. */

import { trans } from './i18n';
import { CHANGED, preferences } from './preferences';
import { diffPairs, diffRows } from './diff';
import type { DiffPair, DiffRow } from './diff';
import { el } from './dom';
import { visible } from './format';

/** Width, in ems of the code's font, from which on there is room for two columns. */
const ROOM = 62;
/** A longer diff is laid out in chunks, those in view only (`card.css`). */
const ROWS = 60;
const KIND: Record<string, string> = { '+': 'oc-add', '-': 'oc-del', '@': 'oc-gap', '\\': 'oc-gap', f: 'oc-file', c: 'oc-cell' };

interface Drawn {
  rows: DiffRow[];
  pairs: DiffPair[];
  /** Something is removed and something added: else half of a view side by side would be empty. */
  isMixed: boolean;
  split: boolean;
}

const drawn = new WeakMap<Element, Drawn>();
let watcher: ResizeObserver | undefined;

/** Draws `diff` into `host`, replacing what is there. It is drawn anew when the room or the preference changes. */
export function drawDiff(host: HTMLElement, diff: string): void {
  const rows = diffRows(diff);
  const lines = rows.filter(row => row.line !== undefined);
  // a file with CRLF throughout need not say so on every line; a mixed one shows each \r
  if (lines.every(({ text }) => text.endsWith('\r'))) {
    lines.forEach(row => (row.text = row.text.slice(0, -1)));
  }
  const isMixed = rows.some(({ sign }) => sign === '+') && rows.some(({ sign }) => sign === '-');
  drawn.set(host, { rows, pairs: diffPairs(rows), isMixed, split: false });
  draw(host, isSplit(host));
  watch(host);
}

function isSplit(host: HTMLElement): boolean {
  const { diffStyle } = preferences();
  if (diffStyle !== 'auto') {
    return diffStyle === 'split';
  }
  const { clientWidth } = host;
  return !!drawn.get(host)?.isMixed && clientWidth > 0 && clientWidth >= ROOM * (parseFloat(getComputedStyle(host).fontSize) || 12);
}

function watch(host: HTMLElement): void {
  const redraw = (node: Element): void => {
    const state = drawn.get(node);
    const split = state && isSplit(node as HTMLElement);
    if (state && split !== undefined && split !== state.split && (node as HTMLElement).clientWidth > 0) {
      draw(node as HTMLElement, split);
    }
  };
  if (!watcher && typeof ResizeObserver !== 'undefined') {
    watcher = new ResizeObserver(entries => entries.forEach(({ target }) => redraw(target)));
    document.addEventListener(CHANGED, () => document.querySelectorAll('.oc-diff').forEach(redraw));
  }
  watcher?.observe(host);
}

function draw(host: HTMLElement, split: boolean): void {
  const state = drawn.get(host) as Drawn;
  state.split = split;
  host.classList.toggle('oc-split', split);
  const width = String(state.rows.reduce((most, { line = 0, before = 0 }) => Math.max(most, line, before), 0)).length;
  host.style.setProperty('--oc-gutter', `${width + 3}ch`);
  const rows = split
    ? state.pairs.map(pair => pairRow(pair, width))
    : state.rows.map(row => line(row, width, 'oc-row'));
  host.replaceChildren();
  for (let at = 0; at < rows.length; at += ROWS) {
    const chunk = el('span', 'oc-chunk');
    chunk.append(...rows.slice(at, at + ROWS));
    host.append(chunk);
  }
}

/** Two lines beside each other; what is no change goes over both columns, but for context, which stands in both. */
function pairRow({ left, right }: DiffPair, width: number): HTMLElement {
  const row = el('span', 'oc-row oc-pair');
  if (!left && right?.line === undefined) {
    row.append(line(right as DiffRow, width, 'oc-side oc-wide'));
  } else if (!left && right?.sign === ' ') {
    const before = line({ ...right, line: right.before }, width, 'oc-side');
    before.setAttribute('aria-hidden', 'true'); // the same as on the right
    row.append(before, line(right, width, 'oc-side'));
  } else {
    row.append(...[left, right].map(side => (side ? line(side, width, 'oc-side') : el('span', 'oc-side oc-blank'))));
  }
  return row;
}

function line(row: DiffRow, width: number, className: string): HTMLElement {
  const node = el('span', `${className} ${KIND[row.sign] ?? ''}`.trim());
  const change = row.sign === '+' || row.sign === '-';
  const number = el('span', 'oc-n', String(row.line ?? '').padStart(width));
  number.setAttribute('aria-hidden', 'true');
  const sign = el('span', 'oc-sign', ` ${change ? row.sign : ' '} `);
  node.append(number, sign);
  if (change) {
    sign.setAttribute('aria-hidden', 'true');
    node.append(el('span', 'oc-sr', row.sign === '+' ? trans.__('added: ') : trans.__('removed: ')));
  }
  let at = 0;
  for (const [from, to] of row.marks ?? []) {
    node.append(visible(row.text.slice(at, from)), el('span', 'oc-mark-word', visible(row.text.slice(from, to))));
    at = to;
  }
  node.append(visible(row.text.slice(at)));
  return node;
}
