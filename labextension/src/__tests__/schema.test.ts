/** @jest-environment jsdom */
import { fits, kindsOf, rowsOf } from '../tools/filter';
import { Fields } from '../tools/form';
import { fieldsOf } from '../tools/schema';
import { read } from '../tools/values';
import type { Typed } from '../tools/values';

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

const fields = fieldsOf(SCHEMA);
const kinds = Object.fromEntries(fields.map(({ name, kind }) => [name, kind]));
const made = (typed: Record<string, Typed>): ReturnType<typeof read> => read(fields, { name: 'Ann', point: { x: '1' }, ...typed });

test('each schema has its field', () => {
  expect(kinds).toEqual({
    name: 'text', count: 'integer', ratio: 'number', kind: 'choice', exact: 'boolean', tags: 'list', point: 'object',
    tree: 'object', either: 'json', free: 'json', __proto__x: 'text'
  });
  expect(fields.slice(0, 2).map(({ name }) => name)).toEqual(['name', 'point']);
  // a default makes it optional, whatever `required` says
  expect(fields.find(({ name }) => name === 'count')).toMatchObject({ required: false, fallback: 3 });
  expect(fields.find(({ name }) => name === 'either')?.type).toBe('string or integer');
});

test('a schema that goes round in a circle ends in JSON', () => {
  let [field] = fields.filter(({ name }) => name === 'tree');
  for (let depth = 0; field.kind === 'object' && depth < 20; depth++) {
    field = field.fields.find(({ name }) => name === 'child') ?? field;
  }
  expect(field.kind).toBe('json');
  const circle = { properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: { $ref: '#/$defs/A' } } };
  expect(fieldsOf(circle)[0].kind).toBe('json');
  expect(fieldsOf({ properties: { a: { $ref: '#/nowhere' } } })[0].kind).toBe('json');
});

test.each([null, 5, [], { properties: 7 }, { properties: { a: null } }])('nothing falls over %j', schema => {
  expect(Array.isArray(fieldsOf(schema))).toBe(true);
});

test('what was typed becomes the arguments; what is open is left out', () => {
  expect(made({}).input).toEqual({ name: 'Ann', point: { x: 1 } });
  const all = made({
    count: '7', ratio: '-.5e1', kind: '1', exact: 'false', tags: ['a b', '1'], point: { x: '0', y: '2' }, either: '"x"',
    free: '{"a": 1}', tree: { label: 'l', child: {} }
  });
  expect(all.problems).toEqual([]);
  expect(all.input).toEqual({
    name: 'Ann', count: 7, ratio: -5, kind: 'b', exact: false, tags: ['a b', '1'], point: { x: 0, y: 2 }, either: 'x',
    free: { a: 1 }, tree: { label: 'l' }
  });
});

test.each<[string, Record<string, Typed>, (string | number)[], RegExp]>([
  ['nothing where something is required', { name: undefined }, ['name'], /required/],
  ['a text too short', { name: 'A' }, ['name'], /at least 2 characters/],
  ['no number', { count: '0x10' }, ['count'], /not a number/],
  ['half a number', { count: '2.5' }, ['count'], /whole/],
  ['too much', { count: '10' }, ['count'], /9 or less/],
  ['too many digits', { ratio: '9007199254740993' }, ['ratio'], /digits/],
  ['something inside', { point: { x: 'a' } }, ['point', 'x'], /not a number/],
  ['an item that is open', { tags: ['a', undefined] }, ['tags', 1], /required/],
  ['no JSON', { either: 'x' }, ['either'], /not valid JSON/],
  ['JSON of another type', { free: '[]' }, ['free'], /type object/],
  ['digits in JSON', { free: '{"a": 9007199254740993}' }, ['free'], /digits/]
])('%s is told beside its field', (_, typed, path, words) => {
  const { problems } = made(typed);
  expect(problems).toHaveLength(1);
  expect(problems[0].path).toEqual(path);
  expect(problems[0].message).toMatch(words);
});

test('a field called __proto__ is one like any other', () => {
  const odd = fieldsOf(JSON.parse('{"properties": {"__proto__": {"type": "string"}}}'));
  const { input } = read(odd, JSON.parse('{"__proto__": "x"}') as Record<string, Typed>);
  expect(Object.keys(input)).toEqual(['__proto__']);
});

test('the form reads its boxes, tells problems beside them and goes to the first', () => {
  const form = new Fields(fields);
  document.body.replaceChildren(form.node);
  const box = (name: string): HTMLInputElement => {
    const label = [...form.node.querySelectorAll('label')].find(({ textContent }) => textContent?.startsWith(name));
    return form.node.querySelector(`#${label?.htmlFor}`) as HTMLInputElement;
  };
  box('name').value = 'Bob';
  box('exact').value = 'true';
  box('kind').value = '1';
  form.node.querySelector<HTMLButtonElement>('[aria-label="Add an item to tags"]')?.click();
  const item = document.activeElement as HTMLTextAreaElement;
  item.value = 'one';
  const { input, problems } = read(fields, form.typed());
  expect(input).toMatchObject({ name: 'Bob', exact: true, kind: 'b', tags: ['one'] });
  expect(problems).toEqual([{ path: ['point', 'x'], message: 'This is required.' }]);
  expect(form.tell([...problems, { path: ['unknown'], message: 'odd' }])).toEqual([{ path: ['unknown'], message: 'odd' }]);
  expect(document.activeElement).toBe(box('x'));
  expect(box('x').getAttribute('aria-invalid')).toBe('true');
  const error = document.getElementById(`${box('x').id}-error`);
  expect(error?.textContent).toBe('This is required.');
  form.tell([]);
  expect(error?.hidden).toBe(true);
  expect(box('x').getAttribute('aria-invalid')).toBe('false');
});

test('an empty text that is required can be given', () => {
  const form = new Fields(fieldsOf({ properties: { text: { type: 'string' } }, required: ['text'] }));
  expect(form.typed()).toEqual({ text: undefined });
  (form.node.querySelector('[type=checkbox]') as HTMLInputElement).checked = true;
  expect(form.typed()).toEqual({ text: '' });
});

test('descriptions are text', () => {
  const [field] = fieldsOf({ properties: { a: { type: 'string', description: '<img src=x onerror=alert(1)>' } } });
  const form = new Fields([field]);
  expect(form.node.querySelector('img')).toBeNull();
  expect(form.node.textContent).toContain('<img src=x');
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
