/** A unified diff as rows with line numbers, and its rows in pairs for a view side by side. */

import { changedWords } from './wordDiff';
import type { Stretch } from './wordDiff';

/** One line of a diff as it is shown. */
export interface DiffRow {
  /** `+`, `-`, a space for context, `@` between hunks, `\` for a note such as a missing final newline, `f` a file, `c` a cell. */
  sign: '+' | '-' | ' ' | '@' | '\\' | 'f' | 'c';
  /** Its number in the file it stands in: the old one for `-`, the new one otherwise. */
  line?: number;
  /** Of context: its number in the old file. */
  before?: number;
  text: string;
  /** What differs from the line whose place it took. */
  marks?: Stretch[];
}

/** How notebook_edit begins the change of a cell. */
const CELL = /^Cell \d+ \([^\n]{0,200}\): /;
const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/;

/**
 * The rows of a unified diff. A hunk ends when the lines that its header counts are read, so a removed line that
 * begins with `--` is not taken for a file's header. Names of files are shown where there are several.
 */
export function diffRows(diff: string): DiffRow[] {
  const rows: DiffRow[] = [];
  const several = (diff.match(/^\+\+\+ /gm) ?? []).length > 1;
  let before = 0;
  let after = 0;
  let oldLeft = 0;
  let newLeft = 0;
  let first = true;
  const lines = diff.split('\n');
  if (lines[lines.length - 1] === '') {
    lines.pop();
  }
  for (const line of lines) {
    const sign = line[0] ?? ' ';
    if (oldLeft > 0 || newLeft > 0) {
      const text = line.slice(1);
      if (sign === '+') {
        rows.push({ sign, line: after++, text });
        newLeft--;
      } else if (sign === '-') {
        rows.push({ sign, line: before++, text });
        oldLeft--;
      } else if (sign === '\\') {
        rows.push({ sign, text: line });
      } else {
        rows.push({ sign: ' ', line: after++, before: before++, text });
        oldLeft--;
        newLeft--;
      }
      continue;
    }
    const hunk = HUNK.exec(line);
    if (CELL.test(line)) {
      rows.push({ sign: 'c', text: line });
      first = true;
    } else if (hunk) {
      before = Number(hunk[1]);
      after = Number(hunk[3]);
      oldLeft = hunk[2] === undefined ? 1 : Number(hunk[2]);
      newLeft = hunk[4] === undefined ? 1 : Number(hunk[4]);
      if (!first) {
        rows.push({ sign: '@', text: '⋯' });
      }
      first = false;
    } else if (sign === '\\') {
      rows.push({ sign, text: line });
    } else if (several && line.startsWith('+++ ') && rows[rows.length - 1]?.sign !== 'c') {
      rows.push({ sign: 'f', text: line.slice(4).replace(/\t.*$/, '') });
      first = true;
    } else if (rows.length === 0 && !/^(?:---|\+\+\+|diff |Index: |index |=+$|new |deleted |old |similarity |rename )/.test(line)) {
      // not a unified diff at all: show what there is rather than nothing
      rows.push({ sign: ' ', text: line });
    }
  }
  return rows;
}

/** The line, in the file as it is now, of the first change of `diff`. */
export function firstChangedLine(diff: string): number | undefined {
  const rows = diffRows(diff);
  const at = rows.findIndex(({ sign }) => sign === '+' || sign === '-');
  return at < 0 ? undefined : (rows.slice(at).find(({ sign }) => sign === '+' || sign === ' ') ?? rows[at]).line;
}

/** What stands in one row side by side; a context line, a gap or a name stands on the right alone. */
export interface DiffPair {
  left?: DiffRow;
  right?: DiffRow;
}

/**
 * The rows two by two: of a block of removed lines that is followed by added ones, the first with the first and so on.
 * The words that differ in a pair are marked in its rows.
 */
export function diffPairs(rows: DiffRow[]): DiffPair[] {
  const pairs: DiffPair[] = [];
  for (let at = 0; at < rows.length; ) {
    if (rows[at].sign !== '-' && rows[at].sign !== '+') {
      pairs.push({ right: rows[at++] });
      continue;
    }
    const removed: DiffRow[] = [];
    const added: DiffRow[] = [];
    for (; at < rows.length && (rows[at].sign === '-' || (rows[at].sign === '\\' && !added.length)); at++) {
      removed.push(rows[at]);
    }
    for (; at < rows.length && (rows[at].sign === '+' || (rows[at].sign === '\\' && added.length)); at++) {
      added.push(rows[at]);
    }
    for (let index = 0; index < Math.max(removed.length, added.length); index++) {
      const left = removed[index];
      const right = added[index];
      if (left?.sign === '-' && right?.sign === '+') {
        [left.marks, right.marks] = changedWords(left.text, right.text);
      }
      pairs.push({ left, right });
    }
  }
  return pairs;
}
