/** The parts of one line of ours, for their colours: magic, tool, option, `key=`, and what a value is made of. */

import { KEY, toolAt, words } from './line';
import type { Magic } from './line';

export type Kind =
  | 'magic'
  | 'tool'
  | 'option'
  | 'key'
  | 'operator'
  | 'string'
  | 'number'
  | 'atom'
  | 'bracket'
  | 'expression';

export interface Token {
  from: number;
  to: number;
  kind: Kind;
}

/** Options that are followed by a value, of all our magics. */
const VALUED = ['-o', '--output', '--timeout', '--agent', '--from', '--days', '-m', '--model', '-a', '--session', '--max-steps', '--json', '--type', '--mode', '--record', '-n', '--at', '--header', '--env', '--code'];
const JSON_PART = /("(?:[^"\\]|\\.)*"?)(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])|\b(true|false|null)\b|([[\]{},:])/g;
const NUMBER = /^-?\d+(\.\d+)?$/;
const QUOTED = /'[^']*'?|"(?:[^"\\]|\\.)*"?/g;
/** A variable of the user's in braces, as requests and values may name it. */
export const EXPRESSION = /(?<![{$])\{[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*|\[[\p{L}\p{N}_-]+\])*\}/gu;
/** Tools whose rest of the line is code. */
const RAW = ['bash', 'python'];

/** The parts of `line`, in order and apart. */
export function tokens(line: string, magic: Magic): Token[] {
  const found: Token[] = [{ from: magic.start, to: magic.end, kind: 'magic' }];
  const list = words(line, magic.end);
  const texts = list.map(({ text }) => text);
  const named = magic.command === 'tool' ? toolAt(texts, VALUED) : magic.command === 'agent' ? -1 : 0;
  let raw = false;
  for (let i = 0; i < list.length; i++) {
    const { text, start, end } = list[i];
    if (i === named) {
      found.push({ from: start, to: end, kind: 'tool' });
    } else if (raw) {
      quoted(text, start, found);
    } else if (text.startsWith('-') && !NUMBER.test(text)) {
      found.push({ from: start, to: end, kind: 'option' });
    } else if (text.startsWith('{') && /^\{\s*(["}]|$)/.test(line.slice(start))) {
      json(line.slice(start), start, found);
      break;
    } else {
      const key = named >= 0 ? KEY.exec(text) : null;
      raw = !key && named >= 0 && i > named && RAW.includes(texts[named]?.toLowerCase() ?? '') && !VALUED.includes(texts[i - 1]);
      if (key) {
        const operator = start + key[1].length;
        found.push({ from: start, to: operator, kind: 'key' }, { from: operator, to: start + key[0].length, kind: 'operator' });
      }
      const from = start + (key?.[0].length ?? 0);
      if (key?.[2] === ':=') {
        // JSON may hold blanks: it goes on up to where its brackets close
        const until = endOfJson(line, from);
        json(line.slice(from, until), from, found);
        while (i + 1 < list.length && list[i + 1].start < until) {
          i++;
        }
      } else {
        value(line.slice(from, end), from, found);
      }
    }
  }
  return found;
}

function value(text: string, from: number, found: Token[]): void {
  if (NUMBER.test(text)) {
    found.push({ from, to: from + text.length, kind: 'number' });
  } else if (text === 'true' || text === 'false' || text === 'null') {
    found.push({ from, to: from + text.length, kind: 'atom' });
  } else if (/^[fF]?['"]/.test(text)) {
    found.push({ from, to: from + text.length, kind: 'string' });
  } else {
    for (const match of text.matchAll(EXPRESSION)) {
      found.push({ from: from + match.index, to: from + match.index + match[0].length, kind: 'expression' });
    }
  }
}

function quoted(text: string, from: number, found: Token[]): void {
  for (const match of text.matchAll(QUOTED)) {
    found.push({ from: from + match.index, to: from + match.index + match[0].length, kind: 'string' });
  }
}

function json(text: string, start: number, found: Token[]): void {
  for (const match of text.matchAll(JSON_PART)) {
    const from = start + match.index;
    const [, string, colon, number, atom, bracket] = match;
    const part = string ?? number ?? atom ?? bracket;
    const kind = string ? (colon ? 'key' : 'string') : number ? 'number' : atom ? 'atom' : 'bracket';
    found.push({ from, to: from + part.length, kind });
  }
}

/** Where the JSON value ends that begins at `from`; the end of the line if it is not finished. */
function endOfJson(line: string, from: number): number {
  let depth = 0;
  let inString = false;
  for (let at = from; at < line.length; at++) {
    const char = line[at];
    if (inString) {
      at += char === '\\' ? 1 : 0;
      inString = char !== '"';
    } else if (char === '"') {
      inString = true;
    } else if (char === '{' || char === '[') {
      depth++;
    } else if (char === '}' || char === ']') {
      depth--;
    } else if (!depth && /\s/.test(char)) {
      return at;
    }
  }
  return line.length;
}

/** What a cell that begins with `%%…` holds below its first line. */
export type Body =
  | { kind: 'language'; name: string }
  /** By the name of the file that is written. */
  | { kind: 'file'; name: string }
  | { kind: 'agent' | 'patch' | 'plain' };

const BODIES: Record<string, Body> = {
  bash: { kind: 'language', name: 'Shell' },
  python: { kind: 'language', name: 'ipython' },
  apply_patch: { kind: 'patch' }
};
const FILES = ['write', 'edit'];

/** What stands below `line`, the first of a cell; null: the cell is no cell magic of ours. */
export function bodyOf(line: string): Body | null {
  const match = /^%%(tool|agent)(?!\w)/.exec(line);
  if (!match) {
    return null;
  }
  if (match[1] === 'agent') {
    return { kind: 'agent' };
  }
  const list = words(line, match[0].length).map(({ text }) => text);
  const named = toolAt(list, VALUED);
  const tool = (list[named] ?? '').toLowerCase();
  if (!FILES.includes(tool)) {
    return Object.hasOwn(BODIES, tool) ? BODIES[tool] : { kind: 'plain' };
  }
  const given = list.slice(named + 1);
  const key = given.find(text => /^file_?path=/i.test(text));
  const loose = given.filter((text, i) => !text.startsWith('-') && !KEY.test(text) && !VALUED.includes(given[i - 1] ?? ''));
  const path = (key ? key.slice(key.indexOf('=') + 1) : (loose[0] ?? '')).replace(/^['"]|['"]$/g, '');
  return path ? { kind: 'file', name: path.slice(path.lastIndexOf('/') + 1) } : { kind: 'plain' };
}
