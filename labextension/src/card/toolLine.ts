/**
 * A call as text that makes it again: a `%tool` line or cell, and Python. What is written here
 * `opencode_jupyter/jupyter/magics/tool_line.py` reads back to the same arguments; `tests/data/tool_lines.json` has cases that
 * both sides are held to. Only the JupyterLab renderer needs it, so it is no part of the live card.
 */

import { visible } from './format';
import { TOOL_BODIES } from './toolBodies';

/** Bodies that may also be the rest of the line, as it stands. */
const RAW = ['command', 'code'];
/** Characters of a command that serve as its description where none is given. */
const DESCRIPTION = 60;

const TOOL = /^[A-Za-z_][\w.-]*$/;
const KEY = /^[A-Za-z_]\w*$/;
/** Text that needs no quotes; what could be a number or a truth value is told apart by them. */
const PLAIN = /^[\w./@%+,:~^=-]*[A-Za-z_/.][\w./@%+,:~^=-]*$/;
const LITERAL = /^(?:true|false|yes|no|on|off|t|f|y|n|null|none|[+-]?(?:inf|infinity|nan)|[+-]?[\d._]+(?:e[+-]?\d+)?)$/i;
/** A command that may stand on the line as it is. */
const COMMAND = /^[\w./~][\w ./:@%+,=~*$|&;<>-]*$/;
const ASSIGNS = /^[A-Za-z_]\w*:?=/;
/** What IPython takes for a prompt of a pasted session, and strips. */
const PROMPT = /^\s*(?:>>>|\.\.\.|In \[\d+\]:|In<\d+>)/;

type Input = Record<string, unknown>;

/** The `%tool` line, or `%%tool` cell, that makes the call; nothing where none can. */
export function toolLine(tool: string, input: unknown): string | undefined {
  if (!TOOL.test(tool) || typeof input !== 'object' || input === null || Array.isArray(input)) {
    return undefined;
  }
  const fields = { ...(input as Input) };
  const bodyKey = TOOL_BODIES.get(tool) ?? '';
  const raw = RAW.includes(bodyKey);
  const body = fields[bodyKey];
  if (raw && typeof body !== 'string') {
    return undefined;
  }
  if (raw && fields.description === described(body as string)) {
    delete fields.description;
  }
  const text = typeof body === 'string' && (raw || body.includes('\n')) ? asBody(bodyKey, body) : undefined;
  if (!Object.keys(fields).every(key => KEY.test(key))) {
    return raw ? undefined : `%tool ${tool} ${json(fields)}`;
  }
  const words = Object.entries(fields).filter(([key]) => text === undefined || key !== bodyKey);
  const head = [tool, ...words.map(([key, value]) => word(key, value))].join(' ');
  if (text === undefined) {
    return `%tool ${head}`;
  }
  const command = body as string;
  return raw && COMMAND.test(command) && !ASSIGNS.test(command) && command === command.trim()
    ? `%tool ${head} ${command}`
    : `%%tool ${head}\n${text}`;
}

/** The call in Python. */
export function pythonCall(tool: string, input: unknown): string {
  const fields = typeof input === 'object' && input !== null && !Array.isArray(input) ? (input as Input) : {};
  const rest = Object.keys(fields).length ? `, ${literal(fields)}` : '';
  return `await ws.call(${literal(tool)}${rest})`;
}

/** What a person sees as the text of the cell's body; nothing where it would not come back as it is. */
function asBody(key: string, text: string): string | undefined {
  if (!text.trim() || visible(text) !== text || PROMPT.test(text)) {
    return undefined;
  }
  if (key !== 'content') {
    return text.endsWith('\n') ? `${text}\n` : text;
  }
  return text.endsWith('\n') ? text : undefined;
}

function word(key: string, value: unknown): string {
  if (typeof value !== 'string') {
    return `${key}:=${json(value)}`;
  }
  if (PLAIN.test(value) && !LITERAL.test(value)) {
    return `${key}=${value}`;
  }
  const quotable = value !== '' && !value.includes("'") && !value.includes('\n') && !/^[[{]/.test(value.trim()) && !LITERAL.test(value.trim());
  return quotable && visible(value) === value && !value.includes('\t') ? `${key}='${value}'` : `${key}:=${json(value)}`;
}

/** JSON on one line, in which every unseen character is written out. */
function json(value: unknown): string {
  const unit = (half: string): string => `\\u${half.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(/[^\x20-\x7e]/gu, character =>
    hidden(character) ? character.split('').map(unit).join('') : character
  );
}

/** Whether a character is not seen, or does not stand alone. */
function hidden(character: string): boolean {
  return visible(character) !== character || /^[\ud800-\udfff]$/.test(character);
}

/** The description that the magic makes of a command. */
function described(command: string): string {
  const first = command.split('\n').map(line => line.trim()).find(Boolean) ?? '';
  return first.length <= DESCRIPTION ? first : `${first.slice(0, DESCRIPTION - 3)}...`;
}

/** `value` as a literal of Python. */
function literal(value: unknown): string {
  if (value === null || value === undefined) {
    return 'None';
  }
  if (typeof value === 'boolean') {
    return value ? 'True' : 'False';
  }
  if (Array.isArray(value)) {
    return `[${value.map(literal).join(', ')}]`;
  }
  if (typeof value === 'object') {
    return `{${Object.entries(value).map(([key, inner]) => `${literal(key)}: ${literal(inner)}`).join(', ')}}`;
  }
  return typeof value === 'string' ? quoted(value) : String(value);
}

/** A text in double quotes; what can't be seen is written out. */
function quoted(text: string): string {
  const inner = text.replace(/["\\]|[^\x20-\x7e]/gu, character => {
    const simple = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '\t': '\\t', '\r': '\\r' }[character];
    if (simple !== undefined || !hidden(character)) {
      return simple ?? character;
    }
    const code = character.codePointAt(0) as number;
    const hex = code.toString(16);
    return code < 0x100 ? `\\x${hex.padStart(2, '0')}` : code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
  });
  return `"${inner}"`;
}
