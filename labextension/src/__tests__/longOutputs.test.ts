/** Long outputs and diffs are in the page as a whole, for the browser's own search, selection and copying. */

import { drawOutput } from '../card/ansi';
import { drawDiff } from '../card/diffview';

const numbered = (n: number): string => Array.from({ length: n }, (_, at) => `line ${at}`).join('\n');
let host: HTMLElement;

beforeEach(() => {
  host = document.createElement('pre');
});

test('an output is shown as a whole, its colours kept over lines', () => {
  drawOutput(host, `\u001b[31m${numbered(5_000)}\u001b[0m!`);
  expect(host.textContent).toBe(`${numbered(5_000)}!`);
  expect([...host.querySelectorAll('span')].every(span => span.style.color === 'var(--oc-ansi-1)')).toBe(true);
});

test('nothing of a line of a megabyte is lost', () => {
  const line = `${'é😀'.repeat(200_000)}end`;
  drawOutput(host, `first\n${line}\nlast`);
  expect(host.textContent).toBe(`first\n${line}\nlast`);
});

test('many changes of colour are many spans', () => {
  drawOutput(host, '\u001b[31mx\u001b[32my'.repeat(2_000));
  expect(host.textContent).toBe('xy'.repeat(2_000));
  expect(host.children).toHaveLength(4_000);
});

test('a shorter output takes the place of a longer one', () => {
  drawOutput(host, numbered(400));
  drawOutput(host, 'short');
  expect(host.textContent).toBe('short');
  drawOutput(host, '');
  expect(host.textContent).toBe('');
});

test('a diff has a row for each of its lines', () => {
  drawDiff(host, `--- a\n+++ b\n@@ -0,0 +1,3000 @@\n${'+x\n'.repeat(3_000)}`);
  expect(host.querySelectorAll('.oc-row')).toHaveLength(3_000);
  expect(host.lastElementChild?.lastElementChild?.textContent).toContain('3000');
});
