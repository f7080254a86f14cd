import { diffPairs, diffRows } from '../card/diff';
import { drawDiff } from '../card/diffview';
import { changedWords } from '../card/wordDiff';
import { setPreferences } from '../card/preferences';
import { DIFF } from './gallery';

const marked = (before: string, after: string): [string[], string[]] => {
  const [old, now] = changedWords(before, after);
  return [old.map(([from, to]) => before.slice(from, to)), now.map(([from, to]) => after.slice(from, to))];
};

test.each([
  ['x = call(1)', 'x = call(1, 2)', [], [', 2']],
  ['return frame.sum()', 'return float(frame.sum())', [], ['float(', ')']],
  ['alpha one beta two gamma', 'alpha 1 beta 2 gamma', ['one', 'two'], ['1', '2']],
  ['same', 'same', [], []],
  ['nothing alike here', 'zzz', [], []]
])('%j and %j differ in %j and %j', (before, after, old, now) => {
  expect(marked(before, after)).toEqual([old, now]);
});

test('blocks that touch stay apart', () => {
  expect(diffPairs(diffRows('@@ -1,2 +1,2 @@\n-a\n+b\n-c\n+d\n'))).toHaveLength(2);
});

test('each cell of a notebook is headed by its name', () => {
  const change = 'Cell 3 (code, id x): replace\nIndex: cell 3\n===\n--- cell 3\n+++ cell 3\n@@ -1,1 +1,1 @@\n-a\n+b\n';
  expect(diffRows(change + change.replace(/3/g, '4')).map(({ sign }) => sign)).toEqual(['c', '-', '+', 'c', '-', '+']);
});

test('side by side where the person wants it: both numbers of a context line, marks, words for a screen reader', () => {
  const host = document.createElement('pre');
  host.className = 'oc-diff';
  setPreferences({ diffStyle: 'split' });
  drawDiff(host, DIFF);
  setPreferences({});
  const rows = [...host.querySelectorAll('.oc-pair')].map(row => [...row.children].map(side => side.textContent));
  expect(rows).toEqual([
    ['12   df = pd.read_csv(path)', '12   df = pd.read_csv(path)'],
    ['13 - removed: df = df.dropna()', '13 + added: df = df.dropna(subset=["price"])'],
    ['', '14 + added: df["price"] = df["price"].astype(float)']
  ]);
  expect([...host.querySelectorAll('.oc-mark-word')].map(node => node.textContent)).toEqual(['subset=["price"]']);
});
