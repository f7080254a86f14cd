/**
 * A JSON schema as the schema of a form, and a form's content as the arguments of a call. The form's own schema knows
 * text boxes, choices, lists and objects only; what they cannot show (unions, free objects, what nests too deeply or in
 * a circle) is a box for JSON. Whether the values are valid is for the kernel to say.
 */

import { trans } from '../../card/i18n';

type Schema = Record<string, unknown>;

/** One node of a form's schema. */
export interface FormSchema {
  type: 'string' | 'array' | 'object';
  title?: string;
  description?: string;
  /** How the text of a box is read; without one it is the value. */
  format?: 'number' | 'json';
  /** The values to choose from. */
  enum?: unknown[];
  items?: FormSchema;
  properties?: Record<string, FormSchema>;
  required?: string[];
  /** Whether null stands for a required value that is left open. */
  nullable?: boolean;
}

/** A place in the arguments, and what is wrong there. */
export interface Problem {
  path: (string | number)[];
  message: string;
}

/** Errors by field, as the form takes them. */
export interface ErrorSchema {
  __errors?: string[];
  [name: string]: ErrorSchema | string[] | undefined;
}

const DEEPEST = 4;
const REFERENCES = 20;

const isObject = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The form for a tool's arguments, required ones first. */
export function formSchema(schema: unknown): FormSchema {
  return isObject(schema) ? members(resolve(schema, schema), schema, 0) : { type: 'object', properties: {} };
}

function members(schema: Schema, root: Schema, depth: number): FormSchema {
  const all = Object.entries(isObject(schema.properties) ? schema.properties : {});
  // OpenCode's schemas call some fields required that have a default
  const isRequired = (name: string, inner: unknown): boolean =>
    Array.isArray(schema.required) && schema.required.includes(name) && !(isObject(inner) && 'default' in inner);
  const fields = all.map(([name, inner]) => [name, field(name, isObject(inner) ? inner : {}, isRequired(name, inner), root, depth)] as const);
  const required = all.filter(one => isRequired(...one)).map(([name]) => name);
  fields.sort(([a], [b]) => Number(required.includes(b)) - Number(required.includes(a)));
  return { type: 'object', properties: Object.fromEntries(fields), required };
}

function field(name: string, given: Schema, required: boolean, root: Schema, depth: number): FormSchema {
  const outer = resolve(given, root);
  const { schema, nullable } = withoutNull(outer, root);
  const shape = shapeOf(schema, root, depth);
  const fallback = given.default ?? outer.default ?? null;
  const description = [
    String(given.description ?? outer.description ?? schema.description ?? '').trim(),
    fallback === null ? '' : trans.__('Default: %1', JSON.stringify(fallback)),
    shape.format === 'json' ? trans.__('JSON: %1', typeWords(schema)) : ''
  ];
  return {
    ...shape,
    ...(name ? { title: required ? `${name} (${trans.__('required')})` : name } : {}),
    description: description.filter(Boolean).join(' · '),
    nullable
  };
}

function shapeOf(schema: Schema, root: Schema, depth: number): FormSchema {
  const choices = schema.type === 'boolean' ? [true, false] : choicesOf(schema);
  if (choices) {
    return { type: 'string', enum: choices };
  }
  const json: FormSchema = { type: 'string', format: 'json' };
  switch (schema.type) {
    case 'string':
      return { type: 'string' };
    case 'number':
    case 'integer':
      return { type: 'string', format: 'number' };
    case 'array':
      return isObject(schema.items) && depth < DEEPEST ? { type: 'array', items: field('', schema.items, false, root, depth + 1) } : json;
    case 'object': {
      const closed = !schema.additionalProperties && isObject(schema.properties) && Object.keys(schema.properties).length > 0;
      return closed && depth < DEEPEST ? members(schema, root, depth + 1) : json;
    }
    default:
      return json;
  }
}

/** Follows a reference within the schema; what stands beside it takes precedence. */
function resolve(schema: Schema, root: Schema): Schema {
  let target = schema;
  for (let turn = 0; turn < REFERENCES; turn++) {
    const { $ref, allOf, ...beside } = target;
    if (Array.isArray(allOf) && allOf.length === 1 && isObject(allOf[0])) {
      target = { ...allOf[0], ...beside };
      continue;
    }
    if (typeof $ref !== 'string') {
      return target;
    }
    let value: unknown = $ref.startsWith('#') ? root : undefined;
    for (const key of $ref.slice(1).split('/').filter(Boolean)) {
      const name = key.replace(/~1/g, '/').replace(/~0/g, '~');
      value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
    }
    target = { ...(isObject(value) ? value : {}), ...beside };
  }
  return {};
}

/** A nullable schema without null. */
function withoutNull(schema: Schema, root: Schema): { schema: Schema; nullable: boolean } {
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter(type => type !== 'null');
    return { schema: { ...schema, type: types.length === 1 ? types[0] : types }, nullable: types.length < schema.type.length };
  }
  const { anyOf, oneOf, ...beside } = schema;
  const options = [anyOf ?? oneOf ?? []].flat().filter(isObject);
  const others = options.filter(({ type }) => type !== 'null');
  const nullable = others.length < options.length;
  if (others.length !== 1) {
    return { schema, nullable };
  }
  const inner = withoutNull(resolve(others[0], root), root);
  return { schema: { ...inner.schema, ...beside }, nullable: nullable || inner.nullable };
}

/** The values a schema lists; nothing where it lists none. */
function choicesOf(schema: Schema): unknown[] | undefined {
  if (Array.isArray(schema.enum)) {
    return schema.enum;
  }
  if ('const' in schema) {
    return [schema.const];
  }
  const options = [schema.anyOf ?? schema.oneOf ?? []].flat().map(option => (isObject(option) ? choicesOf(option) : undefined));
  return options.length && options.every(option => option !== undefined) ? options.flat() : undefined;
}

/** A type for a person: `list of string`, `string or integer`. */
function typeWords(schema: Schema): string {
  const options = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(options)) {
    return [...new Set(options.map(option => (isObject(option) ? typeWords(option) : 'any')))].join(' or ');
  }
  if (schema.type === 'array') {
    return isObject(schema.items) ? `list of ${typeWords(schema.items)}` : 'list';
  }
  return [schema.type ?? 'any'].flat().join(' or ');
}

/**
 * The arguments that a form holds; what was left open is left out.
 *
 * @param problems - receives what cannot be read.
 */
export function argumentsOf(form: FormSchema, content: unknown, problems: Problem[], path: Problem['path'] = []): unknown {
  if (form.type === 'object') {
    const values = Object.entries(form.properties ?? {}).map(([name, inner]) => {
      const required = form.required?.includes(name);
      const typed = isObject(content) && Object.hasOwn(content, name) ? content[name] : undefined;
      const value = argumentsOf(inner, typed, problems, [...path, name]);
      return [name, value === undefined && required ? (inner.nullable ? null : emptyOf(inner)) : value] as const;
    });
    const filled = values.filter(([, value]) => value !== undefined);
    return filled.length || !path.length ? Object.fromEntries(filled) : undefined;
  }
  if (form.type === 'array') {
    const item = form.items as FormSchema;
    const values = Array.isArray(content) ? content.map((typed, at) => argumentsOf(item, typed, problems, [...path, at])) : [];
    return values.length ? values.map(value => (value === undefined ? emptyOf(item) : value)) : undefined;
  }
  if (typeof content !== 'string' || !form.format) {
    return content;
  }
  const value = form.format === 'json' ? parsed(content, path, problems) : numberOf(content);
  if (!isExact(value)) {
    problems.push({ path, message: trans.__('A number has too many digits for this form; write the line by hand.') });
  }
  return value;
}

function parsed(text: string, path: Problem['path'], problems: Problem[]): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    problems.push({ path, message: trans.__('This is not valid JSON: %1', error instanceof Error ? error.message : String(error)) });
    return undefined;
  }
}

/** The number a text stands for; the text itself, for the kernel to refuse, where it is none. */
function numberOf(text: string): number | string {
  return /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** A required list or object that is left open is empty. */
function emptyOf({ type }: FormSchema): unknown {
  return type === 'array' ? [] : type === 'object' ? {} : undefined;
}

/** Whether no whole number lost digits when it was read. */
function isExact(value: unknown): boolean {
  if (typeof value === 'number') {
    return !Number.isInteger(value) || Number.isSafeInteger(value);
  }
  return typeof value !== 'object' || value === null || Object.values(value).every(isExact);
}

/** Problems beside the innermost field of the form that has them, and those that belong to none. */
export function errorsOf(form: FormSchema, problems: readonly Problem[]): { errors: ErrorSchema; others: Problem[] } {
  const errors: ErrorSchema = {};
  const others: Problem[] = [];
  for (const problem of problems) {
    let inner: FormSchema | undefined = form;
    let at = errors;
    for (const key of problem.path) {
      inner = inner.type === 'array' ? inner.items : Object.hasOwn(inner.properties ?? {}, key) ? inner.properties?.[key] : undefined;
      if (!inner) {
        break;
      }
      at = (at[key] ??= {}) as ErrorSchema;
    }
    if (at === errors) {
      others.push(problem);
    } else {
      (at.__errors ??= []).push(problem.message);
    }
  }
  return { errors, others };
}
