/**
 * Suggestions from what a page keeps of a kernel's tools, for a kernel that does not answer in time. They are those of
 * `opencode_jupyter/jupyter/completion.py` without what only the kernel knows: variables, files, sessions, servers.
 */

import { KEY, toolAt, typed } from './line';
import type { Magic, Word } from './line';
import type { FieldInfo, Match, SchemasReply, ToolInfo } from './token';

export interface Suggestions {
  matches: Match[];
  /** Where in the line they begin. */
  start: number;
  /** The kernel would know nothing more. */
  whole: boolean;
}

/** What may stand at the end of `until`, a line of `magic` up to the cursor. */
export function suggest(schemas: SchemasReply, magic: Magic, until: string): Suggestions {
  const { before, word } = typed(until, magic.end);
  const given = before.map(({ text }) => text);
  const { command, cell } = magic;
  if (command === 'tool') {
    return ofTool(schemas, given, word);
  }
  if (command === 'agent') {
    return ofAgent(schemas, given, word, cell);
  }
  if (!given.length) {
    return { matches: starting(schemas.commands[command] ?? [], word.text, 'keyword'), start: word.start, whole: true };
  }
  const modes = command === 'permissions' && given.length === 1 && given[0] === 'mode';
  return { matches: modes ? starting(schemas.modes, word.text, 'keyword') : [], start: word.start, whole: modes };
}

function ofAgent(schemas: SchemasReply, given: string[], word: Word, cell: boolean): Suggestions {
  const last = given[given.length - 1] ?? '';
  if (cell && last === '--mode') {
    return { matches: starting(schemas.modes, word.text, 'keyword'), start: word.start, whole: true };
  }
  const open = cell && !schemas.agentValued.includes(last);
  const names = open ? Object.keys(schemas.agent).filter(name => !given.includes(name)) : [];
  return { matches: starting(names, word.text, 'option'), start: word.start, whole: open };
}

function ofTool(schemas: SchemasReply, given: string[], word: Word): Suggestions {
  const last = given[given.length - 1] ?? '';
  if (schemas.valued.includes(last)) {
    const seconds = last === '--timeout' ? starting(['10', '60', '600'], word.text, 'value') : [];
    return { matches: seconds, start: word.start, whole: last === '--timeout' };
  }
  const at = toolAt(given, schemas.valued);
  const options = starting(
    Object.keys(schemas.options).filter(name => !given.includes(name) && name.startsWith(word.text)),
    word.text,
    'option'
  );
  if (at < 0) {
    const names = schemas.tools.map(({ name }) => name);
    return { matches: [...starting(names, word.text, 'tool'), ...options], start: word.start, whole: true };
  }
  if (word.text.startsWith('-')) {
    return { matches: options, start: word.start, whole: true };
  }
  const tool = find(schemas, given[at]);
  return tool ? ofArguments(schemas, tool, given.slice(at + 1), word) : { matches: [], start: word.start, whole: false };
}

function ofArguments(schemas: SchemasReply, tool: ToolInfo, given: string[], word: Word): Suggestions {
  const key = KEY.exec(word.text);
  if (key) {
    const field = fieldOf(tool, key[1]);
    const typedValue = word.text.slice(key[0].length);
    const matches = field ? values(field, typedValue, key[2]) : [];
    return { matches, start: word.start + key[0].length, whole: choicesOf(field, key[2]).length > 0 };
  }
  let places = openFields(schemas, tool, given);
  if (tool.raw) {
    const front = given.every(text => KEY.test(text) || text.startsWith('-'));
    places = front ? places.filter(({ name }) => name !== tool.body) : [];
  }
  const lowered = word.text.toLowerCase();
  const named = tool.fields.filter(field => places.includes(field) && field.name.toLowerCase().startsWith(lowered));
  const names = named.map(({ name }) => ({ text: `${name}=`, type: 'param' }));
  const first = tool.raw ? [] : places.length ? values(places[0], word.text, '=') : [];
  const matches = word.text || !first.length ? [...first, ...names] : [...names, ...first];
  return { matches, start: word.start, whole: first.length > 0 };
}

/** The fields that are still open behind the words `given`; a positional argument would fill the first. */
export function openFields(schemas: SchemasReply, tool: ToolInfo, given: readonly string[]): FieldInfo[] {
  const used = new Set<FieldInfo>();
  let loose = 0;
  let skip = false;
  for (const text of given) {
    const key = KEY.exec(text);
    if (skip || schemas.valued.includes(text)) {
      skip = !skip;
    } else if (key) {
      const field = fieldOf(tool, key[1]);
      if (field) {
        used.add(field);
      }
    } else if (!text.startsWith('-')) {
      loose++;
    }
  }
  return tool.fields.filter(field => !used.has(field)).slice(loose);
}

/** The tool of that name; a wrong case is put right, as the kernel does. */
export function find(schemas: SchemasReply, name: string): ToolInfo | undefined {
  const wanted = name.replace(/\?+$/, '');
  const lowered = wanted.toLowerCase();
  return (
    schemas.tools.find(tool => tool.name === wanted) ?? schemas.tools.find(tool => tool.name.toLowerCase() === lowered)
  );
}

/** A tool's parameter, in OpenCode's spelling or Python's. */
export function fieldOf(tool: ToolInfo, key: string): FieldInfo | undefined {
  const plain = (name: string): string => name.replace(/[_-]/g, '').toLowerCase();
  return tool.fields.find(({ name }) => name === key) ?? tool.fields.find(({ name }) => plain(name) === plain(key));
}

function choicesOf(field: FieldInfo | undefined, operator: string): string[] {
  const choices = Array.isArray(field?.choices) ? field.choices : [];
  return choices.map(value => (typeof value === 'string' && operator === '=' ? value : JSON.stringify(value)));
}

function values(field: FieldInfo, typedValue: string, operator: string): Match[] {
  return starting(choicesOf(field, operator), typedValue, 'value');
}

function starting(names: readonly string[], prefix: string, type: string): Match[] {
  const lowered = prefix.toLowerCase();
  return names.filter(name => name.toLowerCase().startsWith(lowered)).map(text => ({ text, type }));
}
