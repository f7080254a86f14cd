import { PAGE_LINES, PageViewer } from '../pages';
import type { PageReply } from '../messages';

const SPILL = { path: '/data/a b/tool_1', bytes: 1000, lines: 5000, line: 1001 };
const TOTAL = 5000;

/** A file of `TOTAL` lines. */
const serve = jest.fn(async (line: number, count: number): Promise<PageReply> => {
  const first = line < 1 ? TOTAL - count + 1 : line;
  const lines = Array.from({ length: Math.min(count, TOTAL - first + 1) }, (_, i) => `<b>${first + i}</b>`);
  return { first, lines, bytes: 1000, total: line < 1 ? TOTAL : null, more: first + lines.length <= TOTAL };
});

let viewer: PageViewer;
const one = <T extends HTMLElement>(selector: string): T => viewer.node.querySelector(selector) as T;
const rows = (): string[] => [...viewer.node.querySelectorAll('.oc-row')].map(row => row.textContent as string);
const settle = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) {
    await Promise.resolve();
  }
};

beforeEach(() => {
  serve.mockClear();
  viewer = new PageViewer(SPILL, serve);
});

test('shows the lines around the cut, numbered, as text', async () => {
  await viewer.goTo(1001);
  expect(serve).toHaveBeenCalledWith(981, PAGE_LINES);
  expect(rows()[0]).toBe('981<b>981</b>');
  expect(one('.oc-here').textContent).toBe('1001<b>1001</b>');
  expect(viewer.node.querySelector('b')).toBeNull();
  expect(one('.oc-place').textContent).toBe('lines 981–1,380 of 5,000 lines, 1000 B');
});

test('goes to a line, to the end and to the start', async () => {
  const field = one<HTMLInputElement>('.oc-line');
  field.value = '3000';
  field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  await settle();
  expect(one('.oc-here').textContent).toContain('3000');
  one('button[aria-label="End"]').click();
  await settle();
  expect(rows().at(-1)).toBe('5000<b>5000</b>');
  expect(one('.oc-place').textContent).toBe('lines 4,601–5,000 of 5,000 lines, 1000 B');
  one('button[aria-label="Start"]').click();
  await settle();
  expect(rows()[0]).toBe('1<b>1</b>');
});

test('adds what comes before and after, without a gap, and keeps a bounded number', async () => {
  await viewer.goTo(1001);
  one('button[aria-label="Later"]').click();
  await settle();
  expect(rows()).toHaveLength(2 * PAGE_LINES);
  one('.oc-lines').scrollTop = 0;
  one('button[aria-label="Earlier"]').click();
  await settle();
  expect(rows()[0]).toContain('581');
  for (let i = 0; i < 8; i++) {
    one('button[aria-label="Later"]').click();
    await settle();
  }
  const numbers = rows().map(row => Number(/\d+/.exec(row)?.[0].slice(0, 4)));
  expect(numbers.every((n, i) => i === 0 || n === numbers[i - 1] + 1)).toBe(true);
  expect(numbers.length).toBeLessThanOrEqual(1600);
});

test('asks again while the line is looked for, and says how far it is', async () => {
  const waiting: ((reply: PageReply) => void)[] = [];
  viewer = new PageViewer(SPILL, () => new Promise(resolve => waiting.push(resolve)));
  const done = viewer.goTo(3000);
  waiting[0]({ scanned: 250, bytes: 1000 });
  await settle();
  expect(one('.oc-place').textContent).toBe('looking for line 2,980: 25 %');
  waiting[1](await serve(2980, 400));
  await done;
  expect(one('.oc-here').textContent).toContain('3000');
});

test('an answer that comes late does not take the place of a newer one', async () => {
  const waiting: ((reply: PageReply) => void)[] = [];
  viewer = new PageViewer(SPILL, () => new Promise(resolve => waiting.push(resolve)));
  const first = viewer.goTo(1);
  const second = viewer.goTo(100);
  waiting[1]({ first: 80, lines: ['new'], more: false });
  await second;
  waiting[0]({ first: 1, lines: ['old'], more: false });
  await first;
  expect(rows()).toEqual(['80new']);
});

test('without a kernel it says so, where the file is, how to read it, and tries again', async () => {
  let there = false;
  viewer = new PageViewer(SPILL, async (line, count) => {
    if (!there) {
      throw new Error('No kernel is running here.');
    }
    return serve(line, count);
  });
  await viewer.goTo(1001);
  const words = one('.oc-trouble').textContent as string;
  expect(words).toContain('No kernel is running here.');
  expect(words).toContain('/data/a b/tool_1');
  expect(words).toContain('%tool read "/data/a b/tool_1" offset=1001');
  there = true;
  one('.oc-trouble .oc-link').click();
  await settle();
  expect(one('.oc-trouble').hidden).toBe(true);
  expect(one('.oc-here').textContent).toContain('1001');
});

test('the kernel’s own words are shown when the file is gone', async () => {
  viewer = new PageViewer(SPILL, async () => ({ error: 'The file is not there any more.' }));
  await viewer.goTo(1);
  expect(one('.oc-trouble').textContent).toContain('not there any more');
});
