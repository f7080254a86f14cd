/** What a word of a line means, from what a page keeps of a kernel's tools: for hover texts, the inspector, the menu. */

import { trans } from '../i18n';
import { KEY, magicOf, toolAt, words } from './line';
import type { Magic } from './line';
import { fieldOf, find, openFields } from './suggest';
import type { FieldInfo, HelpReply, Match, SchemasReply, ToolInfo } from './token';

/** Characters of a value that are shown. */
const SHOWN = 200;
const NOTHING: HelpReply = { found: false };

/** What stands at the place `at` of `line`; `first`: the cell's first line. */
export function explain(schemas: SchemasReply, line: string, first: boolean, at: number): HelpReply {
  const magic = magicOf(line, first);
  if (magic?.command !== 'tool' || at < magic.end) {
    return NOTHING;
  }
  const list = words(line, magic.end);
  const here = list.findIndex(({ start, end }) => start <= at && at <= end);
  if (here < 0) {
    return NOTHING;
  }
  const texts = list.map(({ text }) => text);
  const { start, end } = list[here];
  const named = toolAt(texts, schemas.valued);
  const option = texts[here] in schemas.options;
  if (option && (named < 0 || here !== named)) {
    return { ...ofOption(schemas.options, texts[here]), start, end };
  }
  const tool = named >= 0 && here >= named ? find(schemas, texts[named]) : undefined;
  if (!tool) {
    return NOTHING;
  }
  if (here === named) {
    return { ...ofTool(tool), start, end };
  }
  const field = fieldAt(schemas, tool, texts.slice(named + 1, here + 1));
  return field ? { ...ofField(field), start, end } : NOTHING;
}

/** What a suggestion means, for the menu. `before`: the line up to it. */
export function explainMatch(schemas: SchemasReply, magic: Magic, before: string, { text, type }: Match): HelpReply {
  if (magic.command === 'agent' && type === 'option') {
    return ofOption(schemas.agent, text);
  }
  if (magic.command !== 'tool') {
    return NOTHING;
  }
  if (type === 'option') {
    return ofOption(schemas.options, text);
  }
  if (type === 'tool') {
    const tool = find(schemas, text);
    return tool ? ofTool(tool) : NOTHING;
  }
  const texts = words(before, magic.end).map(word => word.text);
  const named = toolAt(texts, schemas.valued);
  const tool = named >= 0 ? find(schemas, texts[named]) : undefined;
  const given = texts.slice(named + 1);
  const glued = !/\s$/.test(before);
  const key = type === 'param' ? text.replace(/=$/, '') : glued ? KEY.exec(given[given.length - 1] ?? '')?.[1] : undefined;
  const field = tool && (key ? fieldOf(tool, key) : type === 'value' ? openFields(schemas, tool, given)[0] : undefined);
  return field ? ofField(field) : NOTHING;
}

/** An explanation in lines of plain text; the first is its head. */
export function lines(help: HelpReply): string[] {
  const { kind, name = '', description = '', usage, source, type, required, choices } = help;
  if (kind === 'tool') {
    return [source ? `${name} (${source})` : name, ...(usage ? [usage] : []), ...(description ? [description] : [])];
  }
  if (kind !== 'parameter') {
    return description ? [name, description] : [name];
  }
  const facts = [type ? trans.__('Type: %1', cut(type)) : ''];
  facts.push(required ? trans.__('Required') : trans.__('Optional'));
  if ('default' in help && help.default !== undefined) {
    facts.push(trans.__('Default: %1', cut(JSON.stringify(help.default))));
  }
  const said = Array.isArray(choices) && choices.length && !type?.includes('"') ? choices : [];
  if (said.length) {
    facts.push(trans.__('Values: %1', cut(said.map(value => JSON.stringify(value)).join(', '))));
  }
  return [name, facts.filter(Boolean).join(' · '), ...(description ? [description] : [])];
}

function cut(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

function ofOption(options: Record<string, string>, name: string): HelpReply {
  const [value, ...rest] = (options[name] ?? '').split('  ');
  const text = rest.join('  ');
  return { found: true, kind: 'option', name: text ? `${name} ${value}` : name, description: text || value };
}

function ofTool(tool: ToolInfo): HelpReply {
  const names = tool.fields.map(({ name, required }) => (required ? name : `[${name}]`));
  const usage = ['%tool', tool.name, ...names].join(' ');
  return { found: true, kind: 'tool', name: tool.name, description: tool.summary, source: tool.source, usage };
}

function ofField(field: FieldInfo): HelpReply {
  return { found: true, kind: 'parameter', ...field };
}

/** The parameter that the last of `given` gives, by its name or by its place among those without one. */
function fieldAt(schemas: SchemasReply, tool: ToolInfo, given: string[]): FieldInfo | undefined {
  const key = KEY.exec(given[given.length - 1]);
  if (key) {
    return fieldOf(tool, key[1]);
  }
  if (tool.raw) {
    return tool.fields.find(({ name }) => name === tool.body);
  }
  const before = given.slice(0, -1);
  if (schemas.valued.includes(before[before.length - 1] ?? '')) {
    return undefined;
  }
  const open = openFields(schemas, tool, before);
  const last = tool.fields[tool.fields.length - 1];
  return open[0] ?? (last?.list ? last : undefined);
}
