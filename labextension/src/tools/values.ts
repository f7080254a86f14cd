/** What a person typed into a form, made into values, or told what is wrong with it. */

import { trans } from '../i18n';
import type { Field } from './schema';

/** What was typed into a field: text of most; the items of a list; by name of an object; undefined: it is left open. */
export type Typed = string | Typed[] | { [name: string]: Typed } | undefined;

/** Where in the arguments something is wrong, and what. */
export interface Problem {
  path: (string | number)[];
  message: string;
}

/** Not given. */
const NONE = Symbol('none');
type Value = unknown;

/** The arguments, and what is wrong with them. */
export function read(fields: readonly Field[], typed: Record<string, Typed>): { input: Record<string, unknown>; problems: Problem[] } {
  const problems: Problem[] = [];
  const input = members(fields, typed, [], problems);
  return { input, problems };
}

function members(fields: readonly Field[], typed: Record<string, Typed>, path: (string | number)[], problems: Problem[]): Record<string, unknown> {
  const found: [string, unknown][] = [];
  for (const field of fields) {
    const value = valueOf(field, Object.hasOwn(typed, field.name) ? typed[field.name] : undefined, [...path, field.name], problems);
    if (value !== NONE) {
      found.push([field.name, value]);
    }
  }
  // not an assignment: a field may be called __proto__
  return Object.fromEntries(found);
}

function valueOf(field: Field, typed: Typed, path: (string | number)[], problems: Problem[]): Value {
  const wrong = (message: string): Value => {
    problems.push({ path, message });
    return NONE;
  };
  if (field.kind === 'object' && isNamed(typed) && (field.required || anything(typed))) {
    return members(field.fields, typed, path, problems);
  }
  if (field.kind === 'list' && Array.isArray(typed) && (field.required || typed.length)) {
    const items = typed.map((one, at) => valueOf(field.item as Field, one, [...path, at], problems));
    const few = field.schema.minItems;
    return typeof few === 'number' && items.length < few
      ? wrong(trans._n('At least %1 item is required.', 'At least %1 items are required.', few))
      : items.filter(one => one !== NONE);
  }
  if (typeof typed !== 'string') {
    return field.required ? (field.nullable ? null : wrong(trans.__('This is required.'))) : NONE;
  }
  return one(field, typed, wrong);
}

/** The value of what was typed into one box. */
function one(field: Field, typed: string, wrong: (message: string) => Value): Value {
  const { schema } = field;
  switch (field.kind) {
    case 'text':
      return text(typed, schema, wrong);
    case 'boolean':
      return typed === 'true';
    case 'choice':
      return field.choices[Number(typed)];
    case 'number':
    case 'integer':
      return number(field, typed.trim(), wrong);
    default:
      try {
        const value: unknown = JSON.parse(typed);
        const types = [schema.type].flat().filter((type): type is string => typeof type === 'string');
        if (types.length && !types.some(type => isA(value, type)) && !(field.nullable && value === null)) {
          return wrong(trans.__('Enter JSON of type %1.', field.type));
        }
        return exact(typed, value) ? value : wrong(trans.__('A number has too many digits for this form; write the line by hand.'));
      } catch (error) {
        return wrong(trans.__('This is not valid JSON: %1', error instanceof Error ? error.message : String(error)));
      }
  }
}

function text(typed: string, { minLength, maxLength, pattern }: Field['schema'], wrong: (message: string) => Value): Value {
  const { length } = [...typed];
  if (typeof minLength === 'number' && length < minLength) {
    return wrong(trans._n('Enter at least %1 character.', 'Enter at least %1 characters.', minLength));
  }
  if (typeof maxLength === 'number' && length > maxLength) {
    return wrong(trans._n('Enter at most %1 character.', 'Enter at most %1 characters.', maxLength));
  }
  if (typeof pattern === 'string' && !matches(typed, pattern)) {
    return wrong(trans.__('This does not match the pattern %1.', pattern));
  }
  return typed;
}

/** Whether a text fits a schema's pattern; one that this page can't read is left to the kernel. */
function matches(typed: string, pattern: string): boolean {
  try {
    return typed.length > 1_000 || pattern.length > 200 || /[+*}]\)?[+*{]|\)[+*{]/.test(pattern) || new RegExp(pattern, 'u').test(typed);
  } catch {
    return true;
  }
}

function number({ kind, schema }: Field, typed: string, wrong: (message: string) => Value): Value {
  const value = Number(typed);
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(typed) || !Number.isFinite(value)) {
    return wrong(trans.__('This is not a number.'));
  }
  if (kind === 'integer' && !Number.isInteger(value)) {
    return wrong(trans.__('Enter a whole number.'));
  }
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return wrong(trans.__('A number has too many digits for this form; write the line by hand.'));
  }
  const bound = (key: string): number | undefined => (typeof schema[key] === 'number' ? schema[key] : undefined);
  const [low, high, above, below] = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'].map(bound);
  if ((low !== undefined && value < low) || (above !== undefined && value <= above)) {
    return wrong(low !== undefined ? trans.__('Enter %1 or more.', low) : trans.__('Enter more than %1.', above));
  }
  if ((high !== undefined && value > high) || (below !== undefined && value >= below)) {
    return wrong(high !== undefined ? trans.__('Enter %1 or less.', high) : trans.__('Enter less than %1.', below));
  }
  return value;
}

/** Whether no whole number of a JSON text lost digits when it was read. */
function exact(typed: string, value: unknown): boolean {
  if (typeof value === 'number') {
    return !Number.isInteger(value) || Number.isSafeInteger(value);
  }
  return typeof value !== 'object' || value === null || Object.values(value).every(inner => exact(typed, inner));
}

function isA(value: unknown, type: string): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function isNamed(typed: Typed): typed is { [name: string]: Typed } {
  return typeof typed === 'object' && !Array.isArray(typed);
}

/** Whether something was typed somewhere within. */
function anything(typed: Typed): boolean {
  if (typeof typed === 'object') {
    return Object.values(typed).some(anything);
  }
  return typed !== undefined;
}
