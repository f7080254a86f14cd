/** The parts of one line of ours, for their colours: magic, tool, option, `key=`, and what a value is made of. */

import { TOOL_BODIES } from '../card/toolBodies';
import { KEY, toolAt, words } from './magicLine';
import type { Magic } from './magicLine';

export interface Token {
  from: number;
  to: number;
  /** `magic`, `tool`, or a group of the expressions below. */
  kind: string;
}

/** Options that are followed by a value, of all our magics. */
const VALUED = ['-o', '--output', '--timeout', '--agent', '--from', '-m', '--model', '-a', '--session', '--max-steps', '--json', '--type', '--mode', '--record', '-n', '--at', '--header', '--env', '--code'];
/** A variable of the user's in braces, as requests and values may name it. */
export const EXPRESSION = /(?<![{$])\{[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*|\[[\p{L}\p{N}_-]+\])*\}/gu;
const OPTION = '(?<=\\s)(?<option>--?[A-Za-z][\\w-]*)';
const STRING = '\'[^\']*\'?|"(?:[^"\\\\]|\\\\.)*"?';
/** What stands around the tool's name: options, arguments by name, values. */
const ARGUMENTS = new RegExp(
  [
    OPTION,
    '(?<=\\s)(?<key>[A-Za-z_][\\w-]*)(?<operator>:?=)',
    // up to the next argument, or to the end of the line
    '(?<json>(?<=:=)[[{].*?(?=\\s[A-Za-z_][\\w-]*:?=|$)|(?<=\\s)\\{\\s*(?:["}]|$).*)',
    `(?<=[\\s=])(?<string>[fF]?(?:${STRING}))`,
    '(?<=[\\s=])(?:(?<number>-?\\d+(?:\\.\\d+)?)|(?<atom>true|false|null))(?=\\s|$)',
    `(?<expression>${EXPRESSION.source})`
  ].join('|'),
  'gu'
);
/** The same of a line that names no tool. */
const PROSE = new RegExp(`${OPTION}|(?<expression>${EXPRESSION.source})`, 'gu');
const COMMAND = new RegExp(`(?<string>${STRING})`, 'gu');
const JSON_PARTS = new RegExp(
  `(?<key>"(?:[^"\\\\]|\\\\.)*"(?=\\s*:))|(?<string>"(?:[^"\\\\]|\\\\.)*"?)|(?<number>-?\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)(?![\\w.])|\\b(?<atom>true|false|null)\\b|(?<bracket>[[\\]{},])`,
  'gu'
);
/** The parts of `line`, in order and apart. */
export function tokens(line: string, magic: Magic): Token[] {
  const parts: Token[] = [{ from: magic.start, to: magic.end, kind: 'magic' }];
  const list = words(line, magic.end);
  const texts = list.map(({ text }) => text);
  const at = magic.command === 'tool' ? toolAt(texts, VALUED) : magic.command === 'agent' ? -1 : 0;
  const tool = list[at];
  if (!tool) {
    add(parts, PROSE, line, magic.end);
    return parts;
  }
  add(parts, ARGUMENTS, line, magic.end, tool.start);
  parts.push({ from: tool.start, to: tool.end, kind: 'tool' });
  const command = BODIES.get(bodyArgument(tool.text))?.kind === 'language' ? list[texts.findIndex((_, index) => index > at && isLoose(texts, index))] : undefined;
  add(parts, ARGUMENTS, line, tool.end, command?.start);
  if (command) {
    add(parts, COMMAND, line, command.start);
  }
  return parts;
}

/** Adds the groups of `pattern` between two places of `line`; the character before the first is seen as well. */
function add(parts: Token[], pattern: RegExp, line: string, from: number, to = line.length): void {
  const text = line.slice(0, to);
  pattern.lastIndex = from;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    let start = match.index;
    for (const [kind, part] of Object.entries(match.groups ?? {})) {
      if (kind === 'json' && part) {
        add(parts, JSON_PARTS, line, start, start + part.length);
      } else if (part) {
        parts.push({ from: start, to: start + part.length, kind });
      }
      start += part?.length ?? 0;
    }
  }
}

/** Whether a word is neither an option, nor its value, nor an argument by name. */
function isLoose(texts: readonly string[], index: number): boolean {
  return !texts[index].startsWith('-') && !KEY.test(texts[index]) && !VALUED.includes(texts[index - 1] ?? '');
}

/** What a cell that begins with `%%…` holds below its first line. */
export type Body =
  | { kind: 'language'; name: string }
  /** By the name of the file that is written. */
  | { kind: 'file'; name: string }
  | { kind: 'agent' | 'patch' | 'plain' };

/** By the argument of a tool that the body fills. */
const BODIES = new Map<string, Body>([
  ['command', { kind: 'language', name: 'Shell' }],
  ['code', { kind: 'language', name: 'ipython' }],
  ['patchText', { kind: 'patch' }]
]);
/** Arguments that become the text of a file. */
const FILES = ['content', 'newString'];

/** The argument of a tool that the body of a cell fills; empty: none. */
function bodyArgument(tool: string): string {
  return TOOL_BODIES.get(tool.toLowerCase()) ?? '';
}

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
  const argument = bodyArgument(list[named] ?? '');
  if (!FILES.includes(argument)) {
    return BODIES.get(argument) ?? { kind: 'plain' };
  }
  const key = list.find((text, index) => index > named && /^file_?path=/i.test(text));
  const loose = list.find((_, index) => index > named && isLoose(list, index));
  const path = (key ? key.slice(key.indexOf('=') + 1) : (loose ?? '')).replace(/^['"]|['"]$/g, '');
  return path ? { kind: 'file', name: path.slice(path.lastIndexOf('/') + 1) } : { kind: 'plain' };
}
