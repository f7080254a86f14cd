import { disposeCard, renderCard } from '../card';
import { OUTPUT_LINES, SOURCE_LINES } from '../card/bodies/cells';
import { codeNodes } from '../card/syntaxColors';
import type { CardCell, CardPart } from '../card';
import { part } from './gallery';

let root: HTMLElement;
const texts = (selector: string): (string | null)[] => [...root.querySelectorAll(selector)].map(node => node.textContent);

beforeEach(() => {
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  disposeCard(root);
  root.remove();
});

/** A notebook as notebook_read gives it, with the places of its cells. */
function notebook(cells: { type?: string; id?: string; executed?: number; source: string; output?: string }[], more: Partial<CardPart['ui']['cells']> = {}): CardPart {
  const lines = ['<path>a.ipynb</path>', '<cells>'];
  const places: CardCell[] = cells.map(({ type = 'code', source, output, ...rest }, index) => {
    lines.push('<cell>');
    const place = { index, type, line: lines.length, source: source ? source.split('\n').length : 0, output: output ? output.split('\n').length : 0, ...rest };
    lines.push(...(source ? source.split('\n') : []), ...(output ? ['<outputs>', ...output.split('\n'), '</outputs>'] : []), '</cell>');
    return place;
  });
  lines.push('', '(End of notebook.)', '</cells>');
  const shown = { cells: places, total: cells.length, language: 'python', notes: [], ...more };
  return part({ status: 'completed', output: lines.join('\n') }, { cells: shown }, { tool: 'notebook_read' });
}

test('cells: their number, what they are, source and outputs; the text for the model is folded away', () => {
  renderCard(
    root,
    notebook([
      { type: 'markdown', id: 'intro', source: '# Prices' },
      { executed: 7, source: 'import pandas as pd\n\n</cell>', output: '<outputs>\n  a\n1 2' },
      { source: '' }
    ])
  );
  expect(texts('.oc-prompt')).toEqual(['0markdown', '1[7]', '2[ ]']);
  expect((root.querySelector('.oc-prompt b') as HTMLElement).title).toBe('cell 0, id intro');
  expect(texts('.oc-source')).toEqual(['# Prices', 'import pandas as pd\n\n</cell>', '']);
  expect(texts('.oc-nbout')).toEqual(['<outputs>\n  a\n1 2']);
  expect(texts('.oc-source .oc-c-keyword')).toEqual(['import', 'as']);
  expect(texts('.oc-caption')).toEqual(['3 cells']);
  expect(root.querySelector('.oc-out')?.parentElement).toHaveProperty('hidden', true);
});

test('a part of a notebook, and what there is to know of it', () => {
  const some = [{ source: 'a' }, { source: 'b' }];
  renderCard(root, notebook(some, { total: 24, notes: ['as open in JupyterLab, with unsaved changes'] }));
  expect(texts('.oc-caption')).toEqual(['cells 0 to 1 of 24 · as open in JupyterLab, with unsaved changes']);
  renderCard(root, notebook(some.slice(1), { total: 24 }));
  expect(texts('.oc-caption')).toEqual(['cell 0 of 24']);
});

test('long sources and outputs show their beginning, and all of it when asked', () => {
  const long = (n: number): string => Array.from({ length: n }, (_, i) => `line${i}`).join('\n');
  renderCard(root, notebook([{ source: long(SOURCE_LINES + 5), output: long(OUTPUT_LINES + 2) }, { source: long(SOURCE_LINES + 1) }]));
  expect(texts('.oc-more')).toEqual(['… 5 more lines', '… 2 more lines']);
  expect(texts('.oc-source pre')).toEqual([long(SOURCE_LINES), long(SOURCE_LINES + 1)]);
  root.querySelectorAll<HTMLButtonElement>('.oc-more').forEach(button => button.click());
  expect(texts('.oc-source pre')[0]).toBe(long(SOURCE_LINES + 5));
  expect(texts('.oc-nbout pre')).toEqual([long(OUTPUT_LINES + 2)]);
  expect(texts('.oc-more')).toEqual([]);
  expect(root.querySelector('.oc-nbout pre')).toBe(document.activeElement);
});

test('an output that was cut short: cells that are not there are left out', () => {
  const whole = notebook([{ source: 'a' }, { source: 'b\nc' }, { source: 'd' }]);
  const output = (whole.state.output ?? '').split('\n').slice(0, 7).join('\n');
  renderCard(root, { ...whole, state: { ...whole.state, output } });
  expect(texts('.oc-source')).toEqual(['a', 'b']);
});

test('hostile cells: nothing becomes markup, nothing hides', () => {
  renderCard(root, notebook([{ type: '<b>', id: '<em>', source: '<script>alert(1)</script>\u202e', output: '<img src=x>\u001b[31mred\u202e' }], { language: '<u>' }));
  expect(root.querySelector('script, img, em, u')).toBeNull();
  expect(texts('.oc-source')).toEqual(['<script>alert(1)</script>\\u202e']);
  expect(texts('.oc-nbout')).toEqual(['<img src=x>red\\u202e']);
});

test.each([
  ['python', 'def f(x="a # b"):  # why', ['keyword def', 'string "a # b"', 'comment # why']],
  ['', '%timeit x\n!ls -la', ['magic %timeit x', 'magic !ls -la']],
  ['ipython3', 'x = 10 % 3 != 0x1f\ny = """a\n\'b"""', ['number 10', 'number 3', 'number 0x1f', 'string """a\n\'b"""']],
  ['python', 's = "not ended\nreturn', ['string "not ended', 'keyword return']],
  ['python', "t = '''to the end\nof it", ["string '''to the end\nof it"]],
  ['R', 'f <- function(x) NULL # r', ['keyword function', 'keyword NULL', 'comment # r']],
  ['javascript', 'const a = `b`; // c\n/* d\n */ a', ['keyword const', 'string `b`', 'comment // c', 'comment /* d\n */']],
  ['python', 'function = important', []]
])('colours of %s: %j', (language, code, spans) => {
  const pre = document.createElement('pre');
  pre.append(...codeNodes(code, language));
  expect(pre.textContent).toBe(code);
  expect([...pre.querySelectorAll('span')].map(node => `${node.className.replace('oc-c-', '')} ${node.textContent}`)).toEqual(spans);
});

test('text that begins and never ends takes no time', () => {
  const begin = performance.now();
  for (const code of ['"""'.repeat(1_000) + '"', "'\\".repeat(20_000), '/*'.repeat(20_000), '%'.repeat(30_000)]) {
    codeNodes(code, 'javascript');
    codeNodes(code, 'python');
  }
  expect(performance.now() - begin).toBeLessThan(2_000);
});
