// A tool's arguments: the JSON schema that a model is sent, and the check of its arguments.
// `args` maps names to types: of Zod 4 (ours or the file's own), of Zod 3, of another library that follows Standard Schema,
// or plain JSON schemas, which are all required.
import * as zod from '../vendor/zod.mjs';

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';
let others;

/** Load what knows the other kinds of types; once, and only if a tool has such. */
export async function prepareFor(shape) {
  if (!Object.values(shape).every(isZod4)) others ??= await import('../vendor/json-schema.mjs');
}

/** The map of names to types, also of a file that gave an object type in its place. */
export function shapeOf(args) {
  if (args === undefined || args === null) return {};
  if (typeof args !== 'object' || Array.isArray(args)) throw new TypeError('args must map names to types');
  if (typeof args.safeParse === 'function' && args.shape) {
    return typeof args.shape === 'function' ? args.shape() : args.shape;
  }
  return args;
}

/** JSON schema of the arguments. */
export function schemaOf(shape) {
  const types = Object.values(shape);
  if (types.every(isZod4)) return fromZod4(zod.object(shape));
  const properties = {};
  const required = [];
  for (const [name, type] of Object.entries(shape)) {
    const { $schema, ...property } = propertyOf(name, type);
    properties[name] = property;
    if (!isOptional(type)) required.push(name);
  }
  return {
    $schema: DIALECT,
    type: 'object',
    properties,
    ...(required.length ? { required } : {})
  };
}

/** The arguments with defaults and transforms, and the issues with them. */
export async function parse(shape, args) {
  const value = {};
  const issues = [];
  for (const [name, type] of Object.entries(shape)) {
    const isPresent = Object.hasOwn(args, name);
    const outcome = await check(type, isPresent ? args[name] : undefined);
    if (outcome.issues) {
      issues.push(...outcome.issues.map(issue => ({ ...issue, path: [name, ...(issue.path ?? [])] })));
    } else if (isPresent || outcome.value !== undefined) {
      value[name] = outcome.value;
    }
  }
  return { value, issues };
}

async function check(type, value) {
  if (typeof type.safeParseAsync === 'function') {
    const { success, data, error } = await type.safeParseAsync(value);
    return success ? { value: data } : { issues: error.issues };
  }
  const standard = type['~standard'];
  if (standard) {
    const { value: parsed, issues } = await standard.validate(value);
    if (!issues) return { value: parsed };
    return {
      issues: issues.map(({ message, path }) => ({ code: 'custom', message, path: path?.map(step => step?.key ?? step) }))
    };
  }
  return { value, issues: checkPlain(type, value) };
}

const checks = new WeakMap();

function checkPlain(type, value) {
  if (value === undefined) return [{ code: 'invalid_type', path: [], message: 'Required' }];
  if (!checks.has(type)) checks.set(type, new others.Ajv2020({ strict: false, allErrors: true, logger: false }).compile(type));
  const fits = checks.get(type);
  if (fits(value)) return undefined;
  return fits.errors.map(({ keyword, message, instancePath }) => ({
    code: keyword,
    path: instancePath.split('/').slice(1).map(step => step.replaceAll('~1', '/').replaceAll('~0', '~')),
    message
  }));
}

function propertyOf(name, type) {
  if (type === null || typeof type !== 'object') throw new TypeError(`args.${name} is no type`);
  if (isZod4(type)) return fromZod4(type);
  if (isZod3(type)) return others.zodToJsonSchema(type, { target: 'jsonSchema2019-09', $refStrategy: 'none' });
  if (type['~standard']) return type['~standard'].jsonSchema?.input?.({ target: 'draft-2020-12' }) ?? {};
  return type;
}

function isOptional(type) {
  if (isZod4(type)) return type._zod.optin === 'optional';
  if (isZod3(type)) return type.isOptional();
  if (type['~standard']) {
    try {
      return !type['~standard'].validate(undefined).issues;
    } catch {
      return false;
    }
  }
  return false;
}

function isZod4(type) {
  return Boolean(type?._zod);
}

function isZod3(type) {
  return Boolean(type?._def) && typeof type.safeParse === 'function' && !isZod4(type);
}

// As OpenCode 1.18 lists it: the schema of what a type takes, in which a field with a default may be left out. (Releases of
// early 2026 listed a text in the place of such a tool's arguments.)
function fromZod4(type) {
  return zod.toJSONSchema(type, { io: 'input', unrepresentable: 'any', override: describe });
}

// A description given through another copy of Zod is in the registry of that copy.
function describe({ zodSchema, jsonSchema }) {
  if (jsonSchema.$ref) return;
  const { id, ...meta } = zodSchema.meta?.() ?? {};
  for (const [name, value] of Object.entries(meta)) jsonSchema[name] ??= value;
}
