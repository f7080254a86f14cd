/**
 * Makes a card of whatever a saved notebook holds: anybody can write one, with any type in any field, of any depth and
 * size. What has another type than the contract says becomes text, or is left out where text makes no sense. Cards of
 * our own pass unchanged. The live card gets its parts from the kernel and does without.
 */

import type { RunPart } from '../run/types';
import { isRecord } from './savedBundle';
import { SCHEMA } from './contractSchema';
import type { CardPart } from './types';

/** Most characters of a text that stands in a line, of any other text, and of a picture's URL. */
const LINE_CHARS = 2_000;
const TEXT_CHARS = 250_000;
const URL_CHARS = 4_000_000;
/** The fields with texts of more than a line. */
const TEXTS = ['advice', 'answers', 'diff', 'error', 'output', 'printed', 'question', 'raw', 'sent', 'tail', 'text'];
/** Most entries of a list, by the field's name; and of a list in a list, such as the cells of a table's row. */
const ENTRIES: Record<string, number> = { columns: 50, types: 50, tables: 20, items: 20_000 };
const OTHER_ENTRIES = 1_000;
const INNER_ENTRIES = 50;
/** Levels of calls inside calls, and of JSON. */
const CALLS = 8;
const LEVELS = 30;

/** A piece of the contract's JSON schema, as far as the contract uses it. */
interface Shape {
  $ref?: string;
  type?: string;
  /** Only a live card shows it. */
  live?: boolean;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Shape[];
  items?: Shape;
  prefixItems?: Shape[];
  properties?: Record<string, Shape>;
  required?: string[];
}

/** JSON, not too deep. */
function json(value: unknown, level = 0): unknown {
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  if (level >= LEVELS) {
    return '…';
  }
  if (Array.isArray(value)) {
    return value.map(entry => json(entry, level + 1));
  }
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, json(entry, level + 1)]));
}

/** A text; of what is none its JSON, so that it can be seen. */
function text(value: unknown, most: number): string | undefined {
  if (value === undefined || value === null) {
    return undefined;
  }
  const whole = typeof value === 'string' ? value : JSON.stringify(json(value));
  return whole.length > most ? `${whole.slice(0, most)}…` : whole;
}

function resolve({ $ref, ...shape }: Shape): Shape {
  return $ref ? (SCHEMA as Record<string, Shape>)[$ref.slice('#/$defs/'.length)] : shape;
}

/** Of several shapes the one that the value's kind names, else the first. */
function alternative(shapes: Shape[], value: unknown): Shape {
  const kind = isRecord(value) ? value.kind : undefined;
  const fits = ({ properties = {} }: Shape): boolean => properties.kind.const === kind || !!properties.kind.enum?.includes(kind);
  const all = shapes.map(resolve);
  return all.find(fits) ?? all[0];
}

/** What can be used of the value of the field `name`; nothing if it can't. */
function checked(schema: Shape, value: unknown, name: string, level: number): unknown {
  const shape = schema.anyOf ? alternative(schema.anyOf, value) : resolve(schema);
  const words = shape.enum ?? (shape.const === undefined ? undefined : [shape.const]);
  // a later version may know other outcomes
  if (words && name !== 'outcome') {
    return words.includes(value) ? value : undefined;
  }
  switch (shape.type) {
    case 'string':
      return text(value, name === 'url' ? URL_CHARS : TEXTS.includes(name) ? TEXT_CHARS : LINE_CHARS);
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined;
    case 'array':
      return list(shape, value, name, level);
    case 'object':
      return shape.properties ? fields(shape, value, level) : isRecord(value) ? json(value) : undefined;
    default:
      return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
  }
}

function list({ items, prefixItems }: Shape, value: unknown, name: string, level: number): unknown {
  const inside = name === 'children' ? level + 1 : level;
  if (!Array.isArray(value) || inside > CALLS) {
    return undefined;
  }
  if (prefixItems) {
    const pair = prefixItems.map((shape, at) => checked(shape, value[at], name, level));
    return pair.includes(undefined) ? undefined : pair;
  }
  const shape = resolve(items as Shape);
  const most = shape.type === 'array' ? OTHER_ENTRIES : (ENTRIES[name] ?? OTHER_ENTRIES);
  const entry = (inner: unknown): unknown => checked(shape, shape.type === 'array' && Array.isArray(inner) ? inner.slice(0, INNER_ENTRIES) : inner, name, inside);
  return value.slice(0, most).map(entry).filter(inner => inner !== undefined);
}

/** An object with the fields of the contract; without one of those that are objects themselves it is none. */
function fields({ properties = {}, required = [] }: Shape, value: unknown, level: number): unknown {
  if (!isRecord(value)) {
    return undefined;
  }
  const made: Record<string, unknown> = {};
  for (const [name, shape] of Object.entries(properties).filter(([, { live }]) => !live)) {
    const own = Object.hasOwn(value, name) ? checked(shape, value[name], name, level) : undefined;
    const field = own ?? (required.includes(name) ? fallback(shape) : undefined);
    if (field !== undefined) {
      made[name] = field;
    } else if (required.includes(name)) {
      return undefined;
    }
  }
  return made;
}

/** What stands for a required field that is missing: of several words the last, which promises least. */
function fallback(schema: Shape): unknown {
  const { type, enum: words, const: word, properties } = resolve(schema);
  const empty: Record<string, unknown> = { string: '', boolean: false, array: [], object: properties ? undefined : {} };
  return word ?? words?.[words.length - 1] ?? (type && type in empty ? empty[type] : 0);
}

const checkedOnce =
  <T>(name: 'CardPart' | 'RunPart', needed: string) =>
  (data: unknown): T | undefined => {
    if (!isRecord(data) || data.v !== 1 || !(needed in data)) {
      return undefined; // something else, or of a later version, which nothing is known about
    }
    try {
      return checked(SCHEMA[name], data, '', 0) as T | undefined;
    } catch {
      return undefined; // nested so deeply that it can't be read
    }
  };

/** A call's card; nothing if `data` is none of a version that is known here. */
export const checkedPart = checkedOnce<CardPart>('CardPart', 'state');
/** A run; nothing if `data` is none of a version that is known here. */
export const checkedRun = checkedOnce<RunPart>('RunPart', 'items');
