import { matches, toolKinds, toolRows } from '../panel/tools/messages';
import { parseArguments, groupProblems, formSchema } from '../panel/tools/formSchema';
import type { FormSchema, Problem, ToolField } from '../panel/tools/formSchema';

const field = (name: string, kind: ToolField['kind'], more: Partial<ToolField> = {}): ToolField => ({
  name, kind, type: kind, description: '', required: false, default: null, choices: [], ...more
});
const FIELDS = [
  field('count', 'number', { default: 3 }),
  field('name', 'text', { required: true, description: 'Whose.' }),
  field('kind', 'choice', { choices: ['a', 'b'] }),
  field('exact', 'choice', { choices: [true, false] }),
  field('tags', 'list'),
  field('either', 'json', { type: 'string or integer' }),
  field('__proto__', 'text')
];
const made = (content: object): { input: unknown; problems: Problem[] } => {
  const problems: Problem[] = [];
  return { input: parseArguments(FIELDS, { name: 'Ann', ...content }, problems), problems };
};

test('each kind has its box, required ones first', () => {
  const form = formSchema(FIELDS);
  const kind = ({ type, format, enum: choices }: FormSchema): string => (choices ? choices.join('|') : (format ?? type));
  expect(Object.entries(form.properties ?? {}).map(([name, inner]) => [name, kind(inner)])).toEqual([
    ['name', 'string'], ['count', 'number'], ['kind', 'a|b'], ['exact', 'true|false'], ['tags', 'array'], ['either', 'json'],
    ['__proto__', 'string']
  ]);
  expect(form.required).toEqual(['name']);
  expect(form.properties?.name).toMatchObject({ title: 'name (required)', description: 'Whose.' });
  expect(form.properties?.count).toMatchObject({ title: 'count', description: 'Default: 3' });
  expect(form.properties?.either.description).toBe('JSON: string or integer');
  expect(formSchema([])).toEqual({ type: 'object', properties: {}, required: [] });
});

test('what was typed becomes the arguments; what is open is left out', () => {
  expect(made({}).input).toEqual({ name: 'Ann' });
  const all = made({ count: '-.5e1', kind: 'b', exact: false, tags: ['a b', undefined, '1'], either: '"x"' });
  expect(all.problems).toEqual([]);
  expect(all.input).toEqual({ name: 'Ann', count: -5, kind: 'b', exact: false, tags: ['a b', '1'], either: 'x' });
  expect(parseArguments([field('a', 'list', { required: true }), field('b', 'text', { required: true })], {}, [])).toEqual({ a: [] });
});

test('what is no number is for the kernel to refuse', () => {
  expect(made({ count: '0x10' })).toEqual({ input: { name: 'Ann', count: '0x10' }, problems: [] });
});

test.each<[string, object, string, RegExp]>([
  ['too many digits', { count: '9007199254740993' }, 'count', /digits/],
  ['no JSON', { either: 'x' }, 'either', /not valid JSON/],
  ['digits in JSON', { either: '{"a": 9007199254740993}' }, 'either', /digits/]
])('%s: reported beside its field', (_, content, name, words) => {
  const { problems } = made(content);
  expect(problems).toEqual([{ path: [name], message: expect.stringMatching(words) as string }]);
  expect(groupProblems(FIELDS, problems).errors).toEqual({ [name]: { __errors: [problems[0].message] } });
});

test("the kernel's errors stand beside the field, or the item, that has them", () => {
  const problems = [
    { path: ['either', 'x'], message: 'no number' },
    { path: ['tags', 1], message: 'no text' },
    { path: ['unknown'], message: 'odd' },
    { path: [], message: 'nothing' }
  ];
  expect(groupProblems(FIELDS, problems)).toEqual({
    errors: { either: { __errors: ['no number'] }, tags: { 1: { __errors: ['no text'] } } },
    others: problems.slice(2)
  });
});

test('a field called __proto__ is one like any other', () => {
  const input = parseArguments(FIELDS, JSON.parse('{"__proto__": "x"}') as object, []);
  expect(Object.keys(input)).toEqual(['__proto__']);
});

test('tools are found by words and source', () => {
  const rows = toolRows({
    tools: [
      { name: 'read', source: 'built in', kind: 'builtin', summary: 'Reads a file.' },
      { name: 'demo_read', source: 'mcp: demo', kind: 'mcp', summary: '' }
    ],
    missing: [{ name: 'far_*', source: 'mcp: far', reason: 'not trusted yet' }]
  });
  const found = (text: string, kind = ''): string[] => rows.filter(row => matches(row, text, kind)).map(({ name }) => name);
  expect(found('READ')).toEqual(['read', 'demo_read']);
  expect(found('file read')).toEqual(['read']);
  expect(found('', 'mcp')).toEqual(['demo_read']);
  expect(found('trusted')).toEqual(['far_*']);
  expect(toolKinds(rows)).toEqual(['builtin', 'mcp', 'missing']);
});
