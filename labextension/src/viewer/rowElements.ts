/** Rows as elements: numbers, colours, hits. */

import { ansiLines } from '../card/ansi';
import { el } from '../card/dom';
import type { Page } from './source';

const HIT = 'oc-hit';

/** The rows of `page`, without their numbers, which {@link label} sets. */
export function drawRows(page: Page): HTMLElement[] {
  const drawn = ansiLines(page.lines, page.style).map(nodes => {
    const row = el('span', 'oc-row');
    const text = el('span', 'oc-text');
    text.append(...nodes);
    row.append(el('span', 'oc-n'), text);
    return row;
  });
  for (const index of page.inside) {
    drawn[index]?.classList.add('oc-inside');
  }
  drawMarks(drawn, page.marks ?? []);
  return drawn;
}

/** Sets what stands in front of each row. */
export function setLabels(rows: Iterable<Element>, labels: string[]): void {
  let index = 0;
  for (const row of rows) {
    const text = labels[index++];
    const number = row.firstElementChild as HTMLElement;
    if (number.dataset.n !== text) {
      // drawn by the style sheet, so that it is neither copied nor read out with the text
      number.dataset.n = text;
    }
  }
}

/** Marks hits in rows. */
export function drawMarks(rows: HTMLElement[], marks: NonNullable<Page['marks']>): void {
  // from the end, so that what is split lies behind what comes next
  for (const [row, start, end] of [...marks].reverse()) {
    const text = rows[row]?.lastElementChild as HTMLElement | null;
    text && markText(text, start, end);
  }
}

/** Takes the marks out of `host`. */
export function clearMarks(host: HTMLElement): void {
  for (const hit of host.querySelectorAll(`.${HIT}`)) {
    const parent = hit.parentNode;
    hit.replaceWith(...hit.childNodes);
    parent?.normalize();
  }
}

function markText(host: HTMLElement, start: number, end: number): void {
  const walker = document.createTreeWalker(host, NodeFilter.SHOW_TEXT);
  const parts: [Text, number, number][] = [];
  let at = 0;
  for (let node = walker.nextNode() as Text | null; node && at < end; node = walker.nextNode() as Text | null) {
    const length = node.data.length;
    if (at + length > start) {
      parts.push([node, Math.max(0, start - at), Math.min(length, end - at)]);
    }
    at += length;
  }
  for (const [node, from, to] of parts) {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    range.surroundContents(el('mark', HIT));
  }
}
