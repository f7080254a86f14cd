import { disposeCard, renderCard } from '../card';
import { GUARD_MS } from '../card/requestView';
import type { CardUi } from '../card';
import { ASK, DIFF, part } from './gallery';

let root: HTMLElement;
const texts = (selector: string): (string | null)[] => [...root.querySelectorAll(selector)].map(node => node.textContent);
const EVIL = '<script>alert(1)</script>\u202e';

beforeEach(() => {
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  disposeCard(root);
  root.remove();
});

function done(ui: Partial<CardUi>, output = 'for the model'): void {
  renderCard(root, part({ status: 'completed', output }, ui));
}

test('tasks: a mark and words for each state, priorities other than the usual', () => {
  done({
    tasks: [
      { content: 'one', status: 'completed', priority: 'medium' },
      { content: 'two', status: 'in_progress', priority: 'high' },
      { content: 'three', status: 'pending', priority: 'low' },
      { content: 'four', status: 'cancelled', priority: '' }
    ]
  });
  expect(texts('.oc-tasks li')).toEqual(['☑ one', '◐ two high', '☐ three low', '✗ four']);
  expect([...root.querySelectorAll('.oc-taskmark')].map(n => n.getAttribute('aria-label'))).toEqual(['done', 'in progress', 'to do', 'cancelled']);
  expect(root.querySelector('.oc-out')?.parentElement).toHaveProperty('hidden', true);
  done({ tasks: [] });
  expect(texts('.oc-block:not([hidden])')).toEqual(['no tasks']);
});

test('one diff for each file, in the card and in the request', () => {
  const diffs = [
    { path: 'a.py', type: 'update', diff: DIFF, additions: 2, deletions: 1 },
    { path: 'new.py', type: 'add', diff: '@@ -0,0 +1 @@\n+x\n', additions: 1, deletions: 0 },
    { path: 'b.py', type: 'move', diff: '', from: 'old.py' }
  ];
  done({ diffs });
  expect(texts('.oc-filediff summary')).toEqual(['a.py +2 −1', 'new.py new +1 ', 'b.py moved from old.py ']);
  expect(root.querySelectorAll('.oc-filediff')[0].querySelectorAll('.oc-add')).toHaveLength(2);
  jest.useFakeTimers();
  renderCard(root, part({}, { ask: { ...ASK, diff: undefined, diffs } }), { reply: jest.fn() });
  jest.advanceTimersByTime(GUARD_MS);
  expect(texts('.oc-ask .oc-filediff summary')).toHaveLength(3);
  jest.useRealTimers();
});

test('a table: columns, rows, numbers to the right, how many there are; the output folded', () => {
  const columns = ['path', 'line', 'text'];
  done({ table: { columns, rows: [['a.py', '12', 'x = 1'], ['b.py', '3', '']], total: 214 } });
  expect(texts('th')).toEqual(columns);
  expect(texts('td')).toEqual(['a.py', '12', 'x = 1', 'b.py', '3', '']);
  expect(texts('.oc-number')).toEqual(['12', '3']);
  expect(texts('.oc-caption')).toEqual(['the first 2 of 214 rows']);
  expect(root.querySelector('.oc-out')?.parentElement).toHaveProperty('hidden', true);
  const before = root.querySelector('table');
  done({ table: { columns, rows: [['a.py', '12', 'x = 1'], ['b.py', '3', '']], total: 214 } });
  expect(root.querySelector('table')).toBe(before);
});

test('a value that a tool returned: types below the names, row labels, the rest of the output in the last line', () => {
  const frame = { name: 'DataFrame', columns: ['city', 'n', 'x'], types: ['', 'int64', 'float64'], index: 1, total: 9000, width: 30 };
  const fields = { name: 'Point', columns: ['', ''], index: 1, rows: [['x', '1'], ['label', EVIL]], total: 2, width: 2 };
  done({ tables: [{ ...frame, rows: [['Graz', '1', 'NaN'], ['Wien', '20', '1e-09']] }, fields], printed: 'step 1\n' }, 'step 1\nDataFrame: 2 rows');
  expect(texts('thead th')).toEqual(['city', 'nint64', 'xfloat64']);
  expect(texts('tbody th[scope=row]')).toEqual(['Graz', 'Wien', 'x', 'label']);
  expect(texts('td.oc-number')).toEqual(['1', 'NaN', '20', '1e-09']);
  expect(texts('.oc-caption')).toEqual(['DataFrame · the first 2 of 9,000 rows, 2 of 30 columns', 'Point']);
  expect(root.querySelectorAll('script')).toHaveLength(0);
  expect(texts('.oc-out')).toEqual(['step 1']);
  expect(texts('.oc-output summary')).toEqual(['output · 2 lines']);
  done({ tables: [fields], printed: '' }, '{"x": 1}');
  expect(root.querySelector('.oc-out')?.parentElement).toHaveProperty('hidden', true);
});

test('names of files stand beside the output', () => {
  done({ files: ['scripts/run.py', 'notes.md'] }, 'the skill');
  expect(texts('.oc-names li')).toEqual(['scripts/run.py', 'notes.md']);
  expect(root.querySelector('.oc-out')?.parentElement).toHaveProperty('hidden', false);
});

test('a traceback keeps its colours', () => {
  renderCard(root, part({ status: 'error', error: '\u001b[0;31mValueError\u001b[0m: no' }, { outcome: 'failed' }));
  expect(texts('.oc-error')).toEqual(['ValueError: no']);
  expect((root.querySelector('.oc-error span') as HTMLElement).style.color).toBe('var(--oc-ansi-1)');
});

test('hostile text stays text in all of them', () => {
  done({
    tasks: [{ content: EVIL, status: EVIL as never, priority: EVIL }],
    diffs: [{ path: EVIL, type: EVIL, diff: EVIL, from: EVIL }],
    table: { columns: [EVIL], rows: [[EVIL]], total: 1 },
    files: [EVIL],
    answered: [{ questions: [{ question: EVIL, header: EVIL }], answers: [[EVIL]], by: EVIL }]
  });
  expect(root.querySelectorAll('script')).toHaveLength(0);
  expect(root.textContent).not.toContain('\u202e');
});
