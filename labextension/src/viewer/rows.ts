/** The rows that are in the page: where they are in the file, which numbers they have; nothing of how they look. */

import type { Extent, Page } from './source';

/** Rows kept; those far from view are dropped. */
export const KEPT_ROWS = 1600;
/** Bytes of the file kept, in rows: long lines would fill the page's memory. Several pages, else both ends would be fetched in turn. */
export const KEPT_BYTES = 4 * 1024 * 1024;

/** One row: where it begins, and whether it goes on with the line of the row before. */
export interface Row {
  offset: number;
  inside: boolean;
}

/** A stretch of a file's rows without a gap. */
export class Rows {
  rows: Row[] = [];
  /** The byte after the last row. */
  end = 0;
  more = false;
  extent: Extent = { bytes: 0, counted: 0, newlines: 0, total: null, writing: false, file: '' };
  /** The number of the first row's line; null: not known. */
  first: number | null = null;

  /** The byte where the first row begins. */
  get start(): number {
    return this.rows[0]?.offset ?? this.end;
  }

  replace(page: Page): void {
    this.rows = rowsOf(page);
    this.end = page.end;
    this.more = page.more;
    this.first = page.first;
    this.extent = page;
  }

  /** Adds what comes after; gives how many rows are dropped at the start. */
  append(page: Page): number {
    this.rows.push(...rowsOf(page));
    this.end = page.end;
    this.more = page.more;
    this.extent = page;
    let over = Math.max(0, this.rows.length - KEPT_ROWS);
    const most = this.rows.length - page.lines.length;
    while (over < most && this.end - this.rows[over].offset > KEPT_BYTES) {
      over++;
    }
    if (this.first !== null) {
      this.first += this.rows.slice(1, over + 1).filter(row => !row.inside).length;
    }
    this.rows.splice(0, over);
    return over;
  }

  /** Adds what comes before; gives how many rows are dropped at the end. */
  prepend(page: Page): number {
    this.rows.unshift(...rowsOf(page));
    this.first = page.first;
    this.extent = page;
    let over = Math.max(0, this.rows.length - KEPT_ROWS);
    const most = this.rows.length - page.lines.length;
    const end = (): number => (over ? this.rows[this.rows.length - over].offset : this.end);
    while (over < most && end() - this.start > KEPT_BYTES) {
      over++;
    }
    if (over) {
      this.end = end();
      this.rows.splice(-over, over);
      this.more = true;
    }
    return over;
  }

  /** Whether `page` goes on where the rows end. */
  follows(page: Page): boolean {
    return page.lines.length > 0 && page.offsets[0] === this.end;
  }

  /** Whether the rows go on where `page` ends. */
  precedes(page: Page): boolean {
    return page.lines.length > 0 && page.end === this.start;
  }

  /** The line that row `index` is in; null if not known. */
  number(index: number): number | null {
    if (this.first === null) {
      return null;
    }
    let number = this.first;
    for (let i = 1; i <= index; i++) {
      number += this.rows[i].inside ? 0 : 1;
    }
    return number;
  }

  /** What each row has in front: its line's number, a guess with a `~`, or nothing inside a line. */
  labels(): string[] {
    let number = this.first ?? this.guessLine(this.start);
    const mark = this.first === null ? '~' : '';
    return this.rows.map(({ inside }, index) => {
      number += index > 0 && !inside ? 1 : 0;
      return inside ? '' : `${mark}${number}`;
    });
  }

  /** The line at a byte, as far as one can tell from the lines that are counted. */
  guessLine(offset: number): number {
    const { counted, newlines } = this.extent;
    return counted > 0 ? Math.round((offset / counted) * newlines) + 1 : 1;
  }
}

function rowsOf({ offsets, inside }: Page): Row[] {
  const within = new Set(inside);
  return offsets.map((offset, index) => ({ offset, inside: within.has(index) }));
}
