import { disposeCard, renderCard } from '../card';
import type { CardUi } from '../card';
import { firstChangedLine } from '../card/diff';
import { below } from '../card/pathLinks';
import { DIFF, part } from './gallery';

let root: HTMLElement;
const openFile = jest.fn();
const links = (): HTMLElement[] => [...root.querySelectorAll<HTMLElement>('.oc-opens')];

beforeEach(() => {
  openFile.mockClear();
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  disposeCard(root);
  root.remove();
});

function done(ui: Partial<CardUi>, callbacks = { openFile } as object): void {
  renderCard(root, part({ status: 'completed', output: 'x' }, ui), callbacks);
}

test('the rows of a result open their file at their line, below the card’s base', () => {
  const table = { columns: ['path', 'line', 'text'], rows: [['src/a.py', '12', 'x'], ['/b.py', '', '']], total: 2 };
  done({ table, base: '/work/' });
  expect(links().map(link => link.getAttribute('aria-label'))).toEqual(['Open src/a.py at line 12', 'Open /b.py']);
  links().forEach(link => link.click());
  expect(openFile.mock.calls).toEqual([['/work/src/a.py', 12], ['/b.py', undefined]]);
  done({ table, base: '/work/' });
  expect(links()).toHaveLength(2);
});

test('the label of a call on one file opens it', () => {
  done({ label: 'src/a.py', opens: { path: '/work/src/a.py', line: 7 } });
  expect(root.querySelector('.oc-title')?.textContent).toBe('src/a.py');
  links()[0].click();
  expect(openFile).toHaveBeenCalledWith('/work/src/a.py', 7);
});

test('a changed file opens at its change, without folding it; a deleted one is no link', () => {
  const diffs = [
    { path: 'a.py', type: 'update', diff: DIFF },
    { path: 'b.py', type: 'delete', diff: DIFF }
  ];
  done({ diffs, base: '/work' });
  expect(links()).toHaveLength(1);
  links()[0].click();
  expect(openFile).toHaveBeenCalledWith('/work/a.py', firstChangedLine(DIFF));
  expect(root.querySelector('details')?.open).toBe(true);
});

test('the files of a skill open in its folder, also where an earlier version saved the card', () => {
  done({ files: ['run.py'], base: '/s/pdf' });
  links()[0].click();
  disposeCard(root);
  renderCard(root, part({ status: 'completed', output: 'x', metadata: { dir: '/s/web' } }, { files: ['get.py'] }), { openFile });
  links()[0].click();
  expect(openFile.mock.calls).toEqual([['/s/pdf/run.py', undefined], ['/s/web/get.py', undefined]]);
});

test('where nobody opens files there are no links', () => {
  done({ files: ['a.md'], opens: { path: '/a' }, label: 'a' }, {});
  expect(links()).toEqual([]);
});

test('the first changed line is one of the file as it is now', () => {
  expect(firstChangedLine('@@ -3,4 +3,4 @@\n a\n-b\n+c\n d\n')).toBe(4);
  expect(firstChangedLine('@@ -3,3 +3,2 @@\n a\n-b\n d\n')).toBe(4);
  expect(firstChangedLine('nothing')).toBeUndefined();
});

test('names on Windows stand for themselves too', () => {
  expect(below('C:\\work', 'D:\\a')).toBe('D:\\a');
  expect(below(undefined, 'a')).toBe('a');
});
