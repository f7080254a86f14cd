/**
 * A JSON schema as fields of a form. What a form can't show as fields of its own (unions, free objects, what nests too
 * deeply or in a circle) is a field for JSON.
 */

export type Schema = Record<string, unknown>;
export type Kind = 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'list' | 'object' | 'json';

/** One field. */
export interface Field {
  name: string;
  kind: Kind;
  required: boolean;
  /** Whether null may be given. */
  nullable: boolean;
  description: string;
  /** What is taken where it is left open; undefined: nothing is. */
  fallback: unknown;
  /** Of a choice. */
  choices: unknown[];
  /** Of a list: what an item is. */
  item?: Field;
  /** Of an object. */
  fields: Field[];
  /** Its type in words, for a field for JSON. */
  type: string;
  /** The schema, with references followed and null taken out. */
  schema: Schema;
}

const DEEPEST = 4;
const REFERENCES = 20;

const isObject = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The fields of a tool's arguments, required ones first. */
export function fieldsOf(schema: unknown): Field[] {
  return isObject(schema) ? membersOf(resolve(schema, schema), schema, 0) : [];
}

function membersOf(schema: Schema, root: Schema, depth: number): Field[] {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const fields = Object.entries(properties).map(([name, one]) =>
    // OpenCode's schemas call some fields required that have a default
    fieldOf(name, isObject(one) ? one : {}, required.includes(name) && !(isObject(one) && 'default' in one), root, depth)
  );
  return fields.sort((a, b) => Number(b.required) - Number(a.required));
}

function fieldOf(name: string, given: Schema, required: boolean, root: Schema, depth: number): Field {
  const outer = resolve(given, root);
  const { schema, nullable } = withoutNull(outer, root);
  const field: Field = {
    name,
    kind: 'json',
    required,
    nullable,
    description: String(given.description ?? outer.description ?? schema.description ?? '').trim(),
    fallback: given.default ?? outer.default,
    choices: [],
    fields: [],
    type: typeWords(schema),
    schema
  };
  const choices = choicesOf(schema);
  if (choices) {
    return { ...field, kind: 'choice', choices };
  }
  switch (schema.type) {
    case 'string':
      return { ...field, kind: 'text' };
    case 'number':
    case 'integer':
    case 'boolean':
      return { ...field, kind: schema.type };
    case 'array':
      if (isObject(schema.items) && depth < DEEPEST) {
        return { ...field, kind: 'list', item: fieldOf('', schema.items, true, root, depth + 1) };
      }
      return field;
    case 'object': {
      const more = schema.additionalProperties;
      const closed = more === undefined || more === false;
      const known = isObject(schema.properties) && Object.keys(schema.properties).length > 0;
      return closed && known && depth < DEEPEST ? { ...field, kind: 'object', fields: membersOf(schema, root, depth + 1) } : field;
    }
    default:
      return field;
  }
}

/** What a reference within the schema stands for, what is said beside it laid over. */
function resolve(schema: Schema, root: Schema): Schema {
  let found = schema;
  for (let turn = 0; turn < REFERENCES; turn++) {
    const one = Array.isArray(found.allOf) && found.allOf.length === 1 && isObject(found.allOf[0]) ? found.allOf[0] : undefined;
    if (one) {
      const { allOf: _, ...beside } = found;
      found = { ...one, ...beside };
      continue;
    }
    if (typeof found.$ref !== 'string') {
      return found;
    }
    let target: unknown = found.$ref.startsWith('#') ? root : undefined;
    for (const key of found.$ref.slice(1).split('/').filter(Boolean)) {
      const name = key.replace(/~1/g, '/').replace(/~0/g, '~');
      target = isObject(target) && Object.hasOwn(target, name) ? target[name] : undefined;
    }
    const { $ref: _, ...beside } = found;
    found = { ...(isObject(target) ? target : {}), ...beside };
  }
  return {};
}

/** A schema that null fits too, without null. */
function withoutNull(schema: Schema, root: Schema): { schema: Schema; nullable: boolean } {
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter(type => type !== 'null');
    const nullable = types.length < schema.type.length;
    return { schema: { ...schema, type: types.length === 1 ? types[0] : types }, nullable };
  }
  const key = Array.isArray(schema.anyOf) ? 'anyOf' : Array.isArray(schema.oneOf) ? 'oneOf' : undefined;
  if (!key) {
    return { schema, nullable: false };
  }
  const options = (schema[key] as unknown[]).filter(isObject);
  const others = options.filter(({ type }) => type !== 'null');
  const nullable = others.length < options.length;
  if (others.length !== 1) {
    return { schema, nullable };
  }
  const { [key]: _, ...beside } = schema;
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
  const options = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(options) || !options.length) {
    return undefined;
  }
  const found = options.map(one => (isObject(one) ? choicesOf(one) : undefined));
  return found.every(one => one !== undefined) ? found.flat() : undefined;
}

/** A type for a person: `list of string`, `string or integer`. */
export function typeWords(schema: Schema): string {
  const options = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(options)) {
    return [...new Set(options.map(one => (isObject(one) ? typeWords(one) : 'any')))].join(' or ');
  }
  if (Array.isArray(schema.type)) {
    return schema.type.join(' or ');
  }
  if (schema.type === 'array') {
    return isObject(schema.items) ? `list of ${typeWords(schema.items)}` : 'list';
  }
  return typeof schema.type === 'string' ? schema.type : 'any';
}
