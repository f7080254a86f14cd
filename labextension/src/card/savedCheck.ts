/**
 * Makes a card of whatever a saved notebook holds: anybody can write one, with any type in any field, of any depth and
 * size. What has another type than it should have becomes text, or is left out where text makes no sense. Cards of our
 * own pass unchanged. The live card gets its parts from the kernel and does without.
 */

import type { CardPart } from './token';
import type { RunPart } from '../run/token';

/** Most characters of a text that stands in a line. */
const LINE = 2_000;
/** Most characters of any other text. */
const TEXT = 4_000_000;
/** Most entries of a list. */
const ENTRIES = 1_000;
/** Most items of a run. */
const ITEMS = 20_000;
/** Levels of calls inside calls, and of JSON. */
const CALLS = 8;
const LEVELS = 30;

/** Gives what can be used of a value; nothing if it can't. */
type Check = (value: unknown, level: number) => unknown;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A text; of what is none its JSON, so that it can be seen. */
const text =
  (most: number): Check =>
  value => {
    if (value === undefined || value === null) {
      return undefined;
    }
    const said = typeof value === 'string' ? value : JSON.stringify(json(value, 0));
    return said.length > most ? `${said.slice(0, most)}…` : said;
  };
const line = text(LINE);
const long = text(TEXT);
const number: Check = value => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);
const flag: Check = value => (typeof value === 'boolean' ? value : undefined);
const oneOf =
  (...words: string[]): Check =>
  value => (words.includes(value as string) ? value : undefined);
const list =
  (check: Check, most = ENTRIES): Check =>
  (value, level) =>
    Array.isArray(value)
      ? value.slice(0, most).map(one => check(one, level)).filter(one => one !== undefined)
      : undefined;
const pair: Check = value => (Array.isArray(value) && value.length === 2 && value.every(n => number(n, 0) !== undefined) ? value : undefined);
/** JSON, not too deep. */
function json(value: unknown, level: number): unknown {
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  if (level >= LEVELS) {
    return '…';
  }
  if (Array.isArray(value)) {
    return value.map(one => json(one, level + 1));
  }
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, json(one, level + 1)]));
}
const object: Check = value => (isRecord(value) ? json(value, 0) : undefined);

/** An object with these fields; without one of `needed` it is none. What it has besides is left out. */
const shape =
  (fields: Record<string, Check>, needed: string[] = [], defaults: Record<string, unknown> = {}): Check =>
  (value, level) => {
    if (!isRecord(value)) {
      return undefined;
    }
    const made: Record<string, unknown> = {};
    for (const [name, check] of Object.entries(fields)) {
      const found = Object.hasOwn(value, name) ? check(value[name], level) : undefined;
      const kept = found ?? defaults[name];
      if (kept !== undefined) {
        made[name] = kept;
      }
    }
    return needed.every(name => name in made) ? made : undefined;
  };

const rule = shape(
  { permission: line, pattern: line, action: line, origin: line },
  [],
  { permission: '', pattern: '', action: '', origin: '' }
);
const diff = shape(
  { path: line, type: line, diff: long, from: line, additions: number, deletions: number },
  [],
  { path: '', type: 'update', diff: '' }
);
const answered = shape(
  { questions: list(shape({ question: long, header: line }, [], { question: '', header: '' })), answers: list(list(long)), by: line },
  ['questions'],
  { by: '' }
);
const decision = shape(
  {
    permission: line, patterns: list(line), action: oneOf('allow', 'deny'), reply: oneOf('once', 'always', 'reject'),
    by: line, rule, rules: list(rule), message: line, note: line, revised: flag
  },
  [],
  { permission: '', patterns: [], action: 'deny', by: '' }
);
const task = shape({ content: line, status: line, priority: line }, [], { content: '', status: 'pending', priority: '' });
const table = shape(
  { name: line, columns: list(line, 50), types: list(line, 50), index: number, rows: list(list(line, 50)), total: number, width: number },
  ['columns', 'rows'],
  { total: 0 }
);
const cell = shape(
  { index: number, id: line, type: line, executed: number, line: number, source: number, output: number, outputs: number },
  ['line', 'source'],
  { index: 0, type: '', output: 0 }
);
const cells = shape({ cells: list(cell), total: number, language: line, notes: list(line) }, ['cells'], { total: 0, language: '', notes: [] });
const progress = shape({ value: number, total: number, message: line }, ['value']);
const spill = shape(
  { path: line, bytes: number, lines: number, line: number, url: line },
  ['path'],
  { bytes: 0, lines: 0, line: 1 }
);
const attachment = shape({ type: line, mime: line, url: long, filename: line }, [], { mime: '', url: '' });
const state = shape(
  {
    status: oneOf('pending', 'running', 'completed', 'error'), input: object, raw: long, title: line, output: long, error: long,
    metadata: object, time: shape({ start: number, end: number }, ['start']), attachments: list(attachment)
  },
  [],
  { status: 'completed', input: {} }
);
const children: Check = (value, level) => (level < CALLS ? list(part)(value, level + 1) : undefined);
const ui = shape(
  {
    label: line, by: oneOf('user', 'model'), waited: number, tail: long, lines: number, bytes: number,
    progress, waitsFor: line, decisions: list(decision), outcome: line, spill, diff: long, diffs: list(diff), answered: list(answered),
    tasks: list(task), table, tables: list(table, 20), printed: long, sent: long, cells, files: list(line), shown: pair, base: line, children,
    opens: shape({ path: line, line: number }, ['path'])
  },
  [],
  { label: '', by: 'user', waited: 0, decisions: [] }
);
const part: Check = (value, level) =>
  shape(
    { v: number, id: line, callID: line, sessionID: line, messageID: line, tool: line, state, ui },
    ['state', 'ui'],
    { v: 1, id: '', callID: '', sessionID: '', messageID: '', tool: '' }
  )(value, level);

const STATUS = ['waiting', 'working', 'retrying', 'compacting', 'done', 'rejected', 'stopped', 'failed'];
const item: Check = (value, level) => {
  if (!isRecord(value)) {
    return undefined;
  }
  return value.kind === 'call'
    ? shape({ kind: line, id: line, parent: line, part }, ['part'], { id: '' })(value, level)
    : shape(
        { kind: oneOf('text', 'reasoning', 'summary', 'note', 'gone'), id: line, text: long, done: flag },
        [],
        { kind: 'note', id: '', text: '' }
      )(value, level);
};
const run = shape(
  {
    v: number, id: line, sessionID: line, title: line, agent: line, model: line, mode: line, status: oneOf(...STATUS),
    outcome: line, step: number, tokens: number, cost: number, started: number, ended: number, waited: number,
    end: shape({ tone: oneOf('err', 'ask', 'off'), text: long, advice: long }, [], { tone: 'off', text: '' }),
    items: list(item, ITEMS)
  },
  ['items'],
  { id: '', sessionID: '', agent: '', model: '', status: 'done', step: 0, tokens: 0, started: 0 }
);

const checkedOnce =
  <T>(check: Check) =>
  (data: unknown): T | undefined => {
    if (!isRecord(data) || data.v !== 1) {
      return undefined; // of a later version, which nothing is known about
    }
    try {
      return check(data, 0) as T | undefined;
    } catch {
      return undefined; // nested so deeply that it can't be read
    }
  };

/** A call's card; nothing if `data` is none of a version that is known here. */
export const checkedPart = checkedOnce<CardPart>(part);
/** A run; nothing if `data` is none of a version that is known here. */
export const checkedRun = checkedOnce<RunPart>(run);
