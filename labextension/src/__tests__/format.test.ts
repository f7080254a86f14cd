import { ansiLines, ansiText } from '../card/ansi';
import { diffRows } from '../card/diff';
import { safeLink, safePicture } from '../card/dom';
import { clock, duration, overwritten, readable, size, visible } from '../card/format';

const shown = (text: string): [string, string][] =>
  ansiLines([text])[0].map(node => [node.textContent as string, (node as HTMLElement).style?.cssText ?? '']);

describe('ANSI', () => {
  test.each([
    ['\u001b[31mred\u001b[0m.', [['red', 'color: var(--oc-ansi-1);'], ['.', '']]],
    ['\u001b[1;92mx\u001b[22my', [['x', 'color: var(--oc-ansi-2); font-weight: 600;'], ['y', 'color: var(--oc-ansi-2);']]],
    ['\u001b[38;5;196mx', [['x', 'color: rgb(255, 0, 0);']]],
    ['\u001b[38;5;244mx', [['x', 'color: rgb(128, 128, 128);']]],
    ['\u001b[48;2;1;2;3mx\u001b[49my', [['x', 'background-color: rgb(1, 2, 3);'], ['y', '']]],
    ['\u001b[38:2::1:2:3mx', [['x', 'color: rgb(1, 2, 3);']]],
    ['\u001b[38;2;999;0;0mx', [['x', '']]],
    ['\u001b[2J\u001b[H\u001b]0;title\u0007\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\ \u001b(B.', [['link', ''], [' ', ''], ['.', '']]],
    ['cut \u001b[3', [['cut ', '']]]
  ])('%j', (text, expected) => {
    expect(shown(text)).toEqual(expected);
  });

  test('no escape character is left whatever comes', () => {
    const text = ansiText('a\u001b\u001b[\u001b]x\u001b[999m\u009b31mb');
    // eslint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u001b\u009b]/);
  });

  test('a line written over itself shows its last state', () => {
    expect(overwritten('10%\r20%\r30%\ndone\r\n')).toBe('30%\ndone\n');
  });
});

describe('diff', () => {
  test('a removed line that begins with -- is no header', () => {
    const rows = diffRows('--- a\n+++ b\n@@ -1,2 +1 @@\n--- a comment\n x\n');
    expect(rows).toEqual([
      { sign: '-', line: 1, text: '-- a comment' },
      { sign: ' ', line: 1, before: 2, text: 'x' }
    ]);
  });

  test('hunks are set apart and files named where there are several', () => {
    const rows = diffRows('--- a\n+++ b/one\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n--- a\n+++ b/two\n@@ -0,0 +1 @@\n+e\n\\ No newline at end of file\n');
    expect(rows.map(row => row.sign + row.text)).toEqual([
      'fb/one', '-a', '+b', '@⋯', '-c', '+d', 'fb/two', '+e', '\\\\ No newline at end of file'
    ]);
  });

  test('what is no diff is shown as it is', () => {
    expect(diffRows('just text').map(row => row.text)).toEqual(['just text']);
  });
});

test.each([
  [0, '0 ms'], [2.4, '2 ms'], [30, '0.03 s'], [400, '0.4 s'], [3210, '3.2 s'], [9960, '0:10'], [12_300, '0:12'], [3_600_000, '1:00:00'], [-5, '0 ms']
])('duration of %d ms is %s', (ms, words) => {
  expect(duration(ms)).toBe(words);
});

test('clocks and sizes', () => {
  expect([clock(0), clock(64_000), clock(-1)]).toEqual(['0:00', '1:04', '0:00']);
  expect([size(812), size(18_432), size(1_258_291), size(3 * 2 ** 30)]).toEqual(['812 B', '18 KB', '1.2 MB', '3.0 GB']);
});

test('unseen characters are shown; joiners of an emoji stay in output only', () => {
  const family = '👩\u200d👧';
  expect(visible(`a\u00adb\u{e0041}${family}`)).toBe('a\\xadb\\u{e0041}👩\\u200d👧');
  expect(readable(`${family}\u202e\u0000\t\n`)).toBe(`${family}\\u202e\\x00\t\n`);
});

test('only inline raster pictures and plain links pass', () => {
  expect(safePicture('data:image/png;base64,AA==')).toBe(true);
  expect(['data:image/svg+xml;base64,AA', 'data:text/html,x', 'http://x/a.png', 'data:image/png,<svg>'].some(safePicture)).toBe(false);
  expect(safeLink('files/a%20b.txt')).toBe('files/a%20b.txt');
  expect(['javascript:alert(1)', ' JaVaScRiPt:x', 'data:text/html,x', 'vbscript:x', undefined].some(safeLink)).toBe(false);
});
