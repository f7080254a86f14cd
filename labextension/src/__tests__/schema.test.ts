import { fits, kindsOf, rowsOf } from '../panel/tools/filter';
import { argumentsOf, errorsOf, formSchema } from '../panel/tools/formSchema';
import type { FormSchema, Problem } from '../panel/tools/formSchema';

const SCHEMA = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'Whose.', minLength: 2 },
    count: { type: 'integer', default: 3, minimum: 1, maximum: 9 },
    ratio: { anyOf: [{ type: 'number' }, { type: 'null' }], default: null },
    kind: { anyOf: [{ const: 'a' }, { const: 'b' }] },
    exact: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string' } },
    point: { $ref: '#/$defs/Point' },
    tree: { $ref: '#/$defs/Tree' },
    either: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
    free: { type: 'object', additionalProperties: { type: 'integer' } },
    __proto__x: { type: 'string' }
  },
  required: ['name', 'point', 'count'],
  $defs: {
    Point: { type: 'object', properties: { x: { type: 'number' }, y: { type: 'number' } }, required: ['x'] },
    Tree: { type: 'object', properties: { child: { $ref: '#/$defs/Tree' }, label: { type: 'string' } } }
  }
};

const form = formSchema(SCHEMA);
const made = (content: object): { input: unknown; problems: Problem[] } => {
  const problems: Problem[] = [];
  return { input: argumentsOf(form, { name: 'Ann', point: { x: '1' }, ...content }, problems), problems };
};
const shown = (schema: object, name: string): FormSchema => formSchema(schema).properties?.[name] as FormSchema;

test('each schema has its field', () => {
  const kind = ({ type, format, enum: choices }: FormSchema): string => (choices ? choices.join('|') : (format ?? type));
  expect(Object.fromEntries(Object.entries(form.properties ?? {}).map(([name, inner]) => [name, kind(inner)]))).toEqual({
    name: 'string', count: 'number', ratio: 'number', kind: 'a|b', exact: 'true|false', tags: 'array', point: 'object',
    tree: 'object', either: 'json', free: 'json', __proto__x: 'string'
  });
  expect(Object.keys(form.properties ?? {}).slice(0, 2)).toEqual(['name', 'point']);
  // a default makes it optional, whatever `required` says
  expect(form.required).toEqual(['name', 'point']);
  expect(form.properties?.name).toMatchObject({ title: 'name (required)', description: 'Whose.' });
  expect(form.properties?.count).toMatchObject({ title: 'count', description: 'Default: 3' });
  expect(form.properties?.either.description).toBe('JSON: string or integer');
});

test('a schema that goes round in a circle ends in JSON', () => {
  let inner = form.properties?.tree as FormSchema;
  for (let depth = 0; inner.type === 'object' && depth < 20; depth++) {
    inner = inner.properties?.child ?? inner;
  }
  expect(inner.format).toBe('json');
  expect(shown({ properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: { $ref: '#/$defs/A' } } }, 'a').format).toBe('json');
  expect(shown({ properties: { a: { $ref: '#/nowhere' } } }, 'a').format).toBe('json');
});

test.each([null, 5, [], { properties: 7 }, { properties: { a: null } }])('nothing falls over %j', schema => {
  expect(formSchema(schema).type).toBe('object');
});

test('what was typed becomes the arguments; what is open is left out', () => {
  expect(made({}).input).toEqual({ name: 'Ann', point: { x: 1 } });
  const all = made({
    count: '7', ratio: '-.5e1', kind: 'b', exact: false, tags: ['a b', '1'], point: { x: '0', y: '2' }, either: '"x"',
    free: '{"a": 1}', tree: { label: 'l', child: {} }
  });
  expect(all.problems).toEqual([]);
  expect(all.input).toEqual({
    name: 'Ann', count: 7, ratio: -5, kind: 'b', exact: false, tags: ['a b', '1'], point: { x: 0, y: 2 }, either: 'x',
    free: { a: 1 }, tree: { label: 'l' }
  });
});

test('a required value that is left open is null, an empty list or object, or for the kernel to miss', () => {
  const required = (inner: object): unknown => argumentsOf(formSchema({ properties: { a: inner }, required: ['a'] }), {}, []);
  expect(required({ type: ['string', 'null'] })).toEqual({ a: null });
  expect(required({ type: 'array', items: { type: 'string' } })).toEqual({ a: [] });
  expect(required(SCHEMA.$defs.Point)).toEqual({ a: {} });
  expect(required({ type: 'string' })).toEqual({});
});

test('what is no number is for the kernel to refuse', () => {
  expect(made({ count: '0x10', point: { x: 'a' } })).toEqual({ input: { name: 'Ann', count: '0x10', point: { x: 'a' } }, problems: [] });
});

test.each<[string, object, Problem['path'], RegExp]>([
  ['too many digits', { ratio: '9007199254740993' }, ['ratio'], /digits/],
  ['no JSON', { either: 'x' }, ['either'], /not valid JSON/],
  ['digits in JSON', { free: '{"a": 9007199254740993}' }, ['free'], /digits/]
])('%s: reported beside its field', (_, content, path, words) => {
  const { problems } = made(content);
  expect(problems).toEqual([{ path, message: expect.stringMatching(words) as string }]);
  expect(errorsOf(form, problems).errors).toEqual({ [path[0]]: { __errors: [problems[0].message] } });
});

test("the kernel's errors stand beside the innermost field that the form has", () => {
  const problems = [
    { path: ['point', 'x'], message: 'no number' },
    { path: ['tags', 1], message: 'no text' },
    { path: ['kind', 'literal'], message: 'not of the list' },
    { path: ['unknown'], message: 'odd' },
    { path: [], message: 'nothing' }
  ];
  expect(errorsOf(form, problems)).toEqual({
    errors: {
      point: { x: { __errors: ['no number'] } },
      tags: { 1: { __errors: ['no text'] } },
      kind: { __errors: ['not of the list'] }
    },
    others: problems.slice(3)
  });
});

test('a field called __proto__ is one like any other', () => {
  const odd = formSchema(JSON.parse('{"properties": {"__proto__": {"type": "string"}}}'));
  const input = argumentsOf(odd, JSON.parse('{"__proto__": "x"}'), []);
  expect(Object.keys(input as object)).toEqual(['__proto__']);
});

test('tools are found by words and source', () => {
  const rows = rowsOf({
    tools: [
      { name: 'read', source: 'built in', kind: 'builtin', summary: 'Reads a file.' },
      { name: 'demo_read', source: 'mcp: demo', kind: 'mcp', summary: '' }
    ],
    missing: [{ name: 'far_*', source: 'mcp: far', reason: 'not trusted yet' }]
  });
  const found = (text: string, kind = ''): string[] => rows.filter(row => fits(row, text, kind)).map(({ name }) => name);
  expect(found('READ')).toEqual(['read', 'demo_read']);
  expect(found('file read')).toEqual(['read']);
  expect(found('', 'mcp')).toEqual(['demo_read']);
  expect(found('trusted')).toEqual(['far_*']);
  expect(kindsOf(rows)).toEqual(['builtin', 'mcp', 'missing']);
});
