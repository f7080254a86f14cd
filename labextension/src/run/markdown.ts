/**
 * A model's text: the simple half of Markdown, built from text nodes alone. Paragraphs, headings, lists, quotes, tables,
 * fenced and inline code, bold, italic, links to http(s), formulas (for the page's typesetter). Anything else, HTML above
 * all, is shown as the text it is. Not by `marked`: its lexer takes 25 seconds for ten kilobytes of `**a `, in the page's
 * only thread, and makes this script half as large again.
 */

import { el } from '../card/dom';
import { readable, visible } from '../card/format';
import { codeBlock } from './codeBlock';
import { FORMULA } from './formulas';

const FENCE = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const BULLET = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
/** The line below a table's head. */
const UNDER = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
/** The first and the last line of a formula that has lines of its own. */
const FORMULA_START = /^\s*(?:\$\$|\\\[)/;
const FORMULA_END = /(?:\$\$|\\\])\s*$/;
const INLINE =
  /(?<formula>\$\$[^$]+\$\$|\\\(.+?\\\)|\\\[.+?\\\]|(?<![\w\\])\$(?=[^\s$])[^$]*?(?<=[^\s\\])\$(?![\w$]))|(?<ticks>`+)(?<code>.+?)(?<!`)\k<ticks>(?!`)|\[(?<label>[^[\]]*)\]\((?<url>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)|(?<bare>https?:\/\/[^\s<>()[\]"'`]+[^\s<>()[\]"'`.,:;!?])|(?<strong>\*\*(?=\S)(?<bold>.{1,400}?)(?<=\S)\*\*)|(?<![\w*])(?<em>\*(?=[^\s*])(?<italic>[^*\n]+?)(?<=[^\s*])\*)(?![\w*])/g;
/** A longer line is shown as it is, since looking for marks in it could take long. */
const LONGEST = 2_000;
/** A longer text is shown as it is. */
const MARKDOWN_CHARS = 64_000;
/** Depth of bold and italic inside each other that is followed. */
const LEVELS = 3;

/** The nodes that show `text`. */
export function markdown(text: string): Node[] {
  if (text.length > MARKDOWN_CHARS) {
    return [el('pre', 'oc-pre', readable(text))];
  }
  const lines = readable(text).replace(/^\n+|\n+$/g, '').split('\n');
  const out: Node[] = [];
  let paragraph: string[] = [];
  const flush = (): void => {
    if (paragraph.length) {
      out.push(lined('p', paragraph));
      paragraph = [];
    }
  };
  /** The index after the lines from `from` on that `belongs` accepts. */
  const until = (from: number, belongs: (line: string) => boolean): number => {
    let end = from;
    while (end < lines.length && belongs(lines[end])) {
      end++;
    }
    return end;
  };
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    let end = at + 1;
    if (fence) {
      flush();
      const closing = new RegExp(`^ {0,3}[${fence[1][0]}]{${fence[1].length},}\\s*$`);
      const close = until(at + 1, text => !closing.test(text));
      out.push(codeBlock(lines.slice(at + 1, close).join('\n'), /[`~]\s*([\w+#-]+)/.exec(line)?.[1] ?? ''));
      end = close + 1;
    } else if (heading) {
      flush();
      const title = el('p', `oc-h oc-h${Math.min(heading[1].length, 3)}`);
      title.setAttribute('role', 'heading');
      title.setAttribute('aria-level', String(Math.min(6, heading[1].length + 2)));
      title.append(...inline(heading[2].trimEnd().replace(/(?<!#)#+$/, '').trimEnd()));
      out.push(title);
    } else if (isHead(lines, at)) {
      flush();
      end = until(at + 2, text => text.includes('|'));
      out.push(table(lines.slice(at, end)));
    } else if (RULE.test(line)) {
      flush();
      out.push(el('hr'));
    } else if (BULLET.test(line)) {
      flush();
      end = until(at, text => BULLET.test(text) || /^(?: {2}|\t)/.test(text));
      out.push(list(lines.slice(at, end)));
    } else if (/^\s*>/.test(line)) {
      flush();
      end = until(at, text => /^\s*>/.test(text));
      out.push(lined('blockquote', lines.slice(at, end).map(text => text.replace(/^\s*> ?/, ''))));
    } else if (FORMULA_START.test(line) && formulaEnd(lines, at) < lines.length) {
      flush();
      end = formulaEnd(lines, at) + 1;
      out.push(el('div', FORMULA, lines.slice(at, end).join('\n')));
    } else if (line.trim()) {
      paragraph.push(line);
    } else {
      flush();
    }
    at = end;
  }
  flush();
  return out;
}

/** The last line of the formula that begins with the line `from`; the number of lines if it has no end. */
function formulaEnd(lines: string[], from: number): number {
  if (lines[from].trim().length > 4 && FORMULA_END.test(lines[from])) {
    return from;
  }
  const end = lines.findIndex((line, index) => index > from && (FORMULA_END.test(line) || !line.trim()));
  return end >= 0 && lines[end].trim() ? end : lines.length;
}

/** Lines below each other in one block. */
function lined(tag: 'p' | 'blockquote', lines: string[]): HTMLElement {
  const block = el(tag);
  lines.forEach((line, index) => block.append(...(index ? [el('br')] : []), ...inline(line)));
  return block;
}

/** A list; deeper ones keep their depth as an indent. */
function list(lines: string[]): HTMLElement {
  const block = el('div', 'oc-list');
  block.setAttribute('role', 'list');
  for (const line of lines) {
    const match = BULLET.exec(line);
    const row = el('div', 'oc-li');
    const words = el('span');
    if (match) {
      row.setAttribute('role', 'listitem');
      const depth = Math.floor(match[1].replace(/\t/g, '    ').length / 2);
      row.style.marginLeft = `${1.4 * Math.min(depth, 6)}em`;
      row.append(el('span', 'oc-bullet', /^\d/.test(match[2]) ? match[2] : '•'));
      words.append(...inline(match[3]));
    } else {
      row.style.marginLeft = '1.4em';
      words.append(...inline(line.trim()));
    }
    row.append(words);
    block.append(row);
  }
  return block;
}

/** Whether a table begins here: a line of cells above a line of as many dashes. */
function isHead(lines: string[], at: number): boolean {
  const under = lines[at + 1] ?? '';
  if (!lines[at].includes('|') || !under.includes('|') || under.length > LONGEST || !UNDER.test(under)) {
    return false;
  }
  return cells(lines[at]).length === cells(under).length;
}

/** The cells of a row; a bar behind a backslash stands for itself. */
function cells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '');
  return inner.split(/(?<!\\)\|/).map(cell => cell.trim().replaceAll('\\|', '|'));
}

/** A table: head, dashes (which may say how a column is aligned), rows. Rows get as many cells as the head has. */
function table(lines: string[]): HTMLElement {
  const sides = cells(lines[1]).map(dashes => (dashes.endsWith(':') ? (dashes.startsWith(':') ? 'center' : 'right') : 'left'));
  const drawn = el('table', 'oc-words-table');
  for (const [row, line] of [lines[0], ...lines.slice(2)].entries()) {
    const texts = cells(line);
    const tr = el('tr');
    for (const [column, side] of sides.entries()) {
      const cell = el(row ? 'td' : 'th');
      cell.style.textAlign = side;
      cell.append(...inline(texts[column] ?? ''));
      tr.append(cell);
    }
    drawn.append(tr);
  }
  const box = el('div', 'oc-words-box');
  box.append(drawn);
  return box;
}

/** The nodes of one line: code, links, bold, italic; the rest as text. */
export function inline(text: string, level = 0): Node[] {
  if (text.length > LONGEST) {
    return [document.createTextNode(text)];
  }
  const out: Node[] = [];
  let last = 0;
  const plain = (end: number): void => {
    if (end > last) {
      out.push(document.createTextNode(text.slice(last, end)));
    }
  };
  for (const match of text.matchAll(INLINE)) {
    plain(match.index);
    last = match.index + match[0].length;
    const { formula, code, label, url, bare, bold, italic } = match.groups ?? {};
    if (formula !== undefined) {
      out.push(el('span', FORMULA, formula));
    } else if (code !== undefined) {
      out.push(el('code', '', code.length > 2 && code.startsWith(' ') && code.endsWith(' ') ? code.slice(1, -1) : code));
    } else if (url !== undefined) {
      out.push(...link(label, url, match[0]));
    } else if (bare !== undefined) {
      out.push(...link(bare, bare, bare));
    } else if (level >= LEVELS) {
      out.push(document.createTextNode(match[0]));
    } else {
      const strong = el(bold !== undefined ? 'b' : 'i');
      strong.append(...inline(bold ?? italic, level + 1));
      out.push(strong);
    }
  }
  plain(text.length);
  return out;
}

/** A link where it leads to the web, and says so; else the text it was. */
function link(label: string, url: string, source: string): Node[] {
  if (!/^https?:\/\//i.test(url)) {
    return [document.createTextNode(source)];
  }
  const anchor = el('a', 'oc-link', label || url);
  anchor.href = url;
  anchor.target = '_blank';
  anchor.rel = 'noopener noreferrer';
  return label === url || !label ? [anchor] : [anchor, el('span', 'oc-url', ` (${visible(url)})`)];
}
