/** One line of a cell as the magics read it: which magic it is, its words and their places. Pure; knows no tool. */

/** A line longer than this is left alone: nobody typed it. */
export const LONGEST = 20_000;
/** Our magics on a line; an assignment may stand before it. A sub-command or a word follows behind a blank. */
const LINE =
  /^\s*(?:[\p{L}_][\p{L}\p{N}_.,\s\[\]'"*]*=\s*)?%(tools|permissions|mcp|sessions|agent|tool)(?![\p{L}\p{N}_])/u;
const CELL = /^%%(tool|agent)(?![\p{L}\p{N}_])/u;
const BLANK = ' \t\r\n';
/** `key=` or `key:=` at a word's beginning. */
export const KEY = /^([A-Za-z_][\w-]*)(:?=)/;

export interface Magic {
  /** `tool`, `agent`, `tools`, … */
  command: string;
  /** `%%…` */
  cell: boolean;
  /** Where the percent sign stands. */
  start: number;
  /** Just behind the magic's name. */
  end: number;
}

export interface Word {
  text: string;
  start: number;
  end: number;
}

/** The magic of ours that `line` is; `first`: it is the cell's first line, where `%%` counts. */
export function magicOf(line: string, first: boolean): Magic | null {
  if (!line.includes('%')) {
    return null;
  }
  const match = LINE.exec(line.length > LONGEST ? line.slice(0, LONGEST) : line) ?? (first ? CELL.exec(line) : null);
  if (!match) {
    return null;
  }
  const cell = match[0].startsWith('%%');
  const end = match[0].length;
  return { command: match[1], cell, start: end - match[1].length - (cell ? 2 : 1), end };
}

/** The words of `line` from `from` on, quotes and escapes kept, an unfinished quote to the end of the line. */
export function words(line: string, from: number): Word[] {
  const list: Word[] = [];
  let begin = -1;
  let mark = '';
  let escaped = false;
  for (let at = from; at < line.length; at++) {
    const char = line[at];
    if (!mark && !escaped && BLANK.includes(char)) {
      if (begin >= 0) {
        list.push({ text: line.slice(begin, at), start: begin, end: at });
        begin = -1;
      }
      continue;
    }
    begin = begin < 0 ? at : begin;
    if (escaped) {
      escaped = false;
    } else if (char === '\\' && mark !== "'") {
      escaped = true;
    } else if (mark) {
      mark = char === mark ? '' : mark;
    } else if (char === "'" || char === '"') {
      mark = char;
    }
  }
  if (begin >= 0) {
    list.push({ text: line.slice(begin), start: begin, end: line.length });
  }
  return list;
}

/** Which of `list` names the tool: the first that is neither an option nor an option's value; -1: none yet. */
export function toolAt(list: readonly string[], valued: readonly string[]): number {
  for (let at = 0; at < list.length; at++) {
    if (valued.includes(list[at])) {
      at++;
    } else if (!list[at].startsWith('-')) {
      return at;
    }
  }
  return -1;
}
