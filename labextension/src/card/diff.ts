/** A unified diff as rows with line numbers. */

import { el } from './dom';
import { visible } from './format';

/** One line of a diff as it is shown. */
export interface DiffRow {
  /** `+`, `-`, a space for context, `@` between hunks, `\` for a note such as a missing final newline. */
  sign: '+' | '-' | ' ' | '@' | '\\' | 'f';
  /** Its number in the file it stands in: the old one for `-`, the new one otherwise. */
  line?: number;
  text: string;
}

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
        rows.push({ sign: ' ', line: after++, text });
        before++;
        oldLeft--;
        newLeft--;
      }
      continue;
    }
    const hunk = HUNK.exec(line);
    if (hunk) {
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
    } else if (several && line.startsWith('+++ ')) {
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
export function firstChange(diff: string): number | undefined {
  const rows = diffRows(diff);
  const at = rows.findIndex(({ sign }) => sign === '+' || sign === '-');
  return at < 0 ? undefined : (rows.slice(at).find(({ sign }) => sign === '+' || sign === ' ') ?? rows[at]).line;
}

const KIND = { '+': 'oc-add', '-': 'oc-del', ' ': '', '@': 'oc-gap', '\\': 'oc-gap', f: 'oc-file' };

/** Draws `diff` into `host`, replacing what is there. */
export function drawDiff(host: HTMLElement, diff: string): void {
  const rows = diffRows(diff);
  const width = String(rows.reduce((most, row) => Math.max(most, row.line ?? 0), 0)).length;
  const code = rows.filter(row => row.line !== undefined);
  // a file with CRLF throughout need not say so on every line; a mixed one shows each \r
  const crlf = code.length > 0 && code.every(row => row.text.endsWith('\r'));
  const fragment = document.createDocumentFragment();
  for (const row of rows) {
    const line = el('span', `oc-row ${KIND[row.sign]}`.trim());
    const sign = row.sign === '+' || row.sign === '-' ? row.sign : ' ';
    line.append(el('span', 'oc-n', String(row.line ?? '').padStart(width)), ` ${sign} `, visible(crlf ? row.text.replace(/\r$/, '') : row.text));
    fragment.append(line);
  }
  host.replaceChildren(fragment);
}
