import { SilentError } from '../kernel/requests';
import { drawRows } from '../viewer/rowElements';
import { KEPT_ROWS } from '../viewer/rows';
import { fetchFile } from '../viewer/download';
import { PAGE_ROWS, Source } from '../viewer/source';
import type { Page, SpillRequest } from '../viewer/source';
import { Viewer } from '../viewer/viewer';

const SPILL = { path: '/data/a b/tool_1', bytes: 50_000, lines: 5000, line: 1001 };
const WIDTH = 10;

/** A file whose lines all have {@link WIDTH} bytes, answered for as the kernel does. */
class File {
  lines = 5000;
  /** Lines that are counted so far; all of them if left out. */
  counted: number | undefined;
  writing = false;
  file = '1:1';
  asked: SpillRequest[] = [];
  hits: number[] = [];
  error = '';

  extent() {
    const counted = Math.min(this.counted ?? this.lines, this.lines);
    const { lines, writing, file } = this;
    return { bytes: lines * WIDTH, counted: counted * WIDTH, newlines: counted, total: counted < lines ? null : lines, writing, file };
  }

  readonly ask = jest.fn(async (request: SpillRequest): Promise<unknown> => {
    this.asked.push(request);
    if (this.error) {
      return { error: this.error };
    }
    const { kind, line, at, near, before, count } = request as SpillRequest & Record<string, number | undefined>;
    const known = (from: number): number | null => (from <= (this.counted ?? this.lines) ? from + 1 : null);
    if (kind === 'extent') {
      return { ...this.extent(), number: known((at ?? 0) / WIDTH) };
    }
    if (kind === 'search') {
      if (request.stop) {
        return {};
      }
      const after = this.hits.find(hit => hit > (line as number)) ?? null;
      const ahead = [...this.hits].reverse().find(hit => hit < (line as number)) ?? null;
      const found = request.direction === -1 ? ahead : after;
      const place = found === null ? null : this.hits.indexOf(found) + 1;
      return { hits: this.hits.length, scanned: 1, bytes: 1, done: true, full: false, found, place };
    }
    const most = count as number;
    let first: number;
    let last: number;
    if (before !== undefined || (line ?? at ?? near) === undefined) {
      last = (before ?? this.lines * WIDTH) / WIDTH;
      first = Math.max(0, last - most);
    } else {
      first = line !== undefined ? line - 1 : Math.floor(((at ?? near) as number) / WIDTH);
      last = Math.min(this.lines, first + most);
    }
    const numbers = Array.from({ length: last - first }, (_, i) => first + i);
    return {
      ...this.extent(),
      first: known(first),
      lines: numbers.map(n => `<b>${n + 1}</b>`),
      offsets: numbers.map(n => n * WIDTH),
      inside: [],
      end: last * WIDTH,
      more: last < this.lines,
      style: ''
    };
  });
}

let file: File;
let viewer: Viewer;
const one = <T extends HTMLElement>(selector: string): T => viewer.node.querySelector(selector) as T;
const press = (name: string): void => one(`button[aria-label="${name}"]`).click();
const rows = (): string[] => [...viewer.node.querySelectorAll('.oc-row')].map(row => `${(row.firstElementChild as HTMLElement).dataset.n} ${row.textContent}`);
const key = (name: string, more: KeyboardEventInit = {}, target = '.oc-lines'): void => {
  one(target).dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true, ...more }));
};
const drag = (share: number): void => {
  one<HTMLInputElement>('.oc-rail').value = String(share);
  one('.oc-rail').dispatchEvent(new Event('input'));
};
const settle = async (): Promise<void> => {
  for (let i = 0; i < 30; i++) {
    await Promise.resolve();
  }
};

beforeEach(() => {
  jest.useFakeTimers();
  file = new File();
  viewer = new Viewer(SPILL, new Source(SPILL.path, file.ask));
  document.body.append(viewer.node);
});

afterEach(() => {
  viewer.dispose();
  viewer.node.remove();
  jest.useRealTimers();
});

test('shows the lines around the cut, numbered, as text', async () => {
  await viewer.goTo(1001);
  expect(file.asked[0]).toMatchObject({ kind: 'page', path: SPILL.path, line: 981, count: PAGE_ROWS });
  expect(rows()[0]).toBe('981 <b>981</b>');
  expect(one('.oc-here').textContent).toBe('<b>1001</b>');
  expect(viewer.node.querySelector('b')).toBeNull();
  expect(one('.oc-place').textContent).toBe('line 981 of 5,000 lines, 49 KB');
  const rail = one<HTMLInputElement>('.oc-rail');
  expect([rail.value, rail.getAttribute('aria-valuetext')]).toEqual(['0.196', 'line 981 of 5,000 lines, 49 KB']);
  await viewer.goTo(0);
  expect(rail.value).toBe('1');
});

test('goes to a line, to the end and to the start, by buttons and by keys', async () => {
  await viewer.goTo(1001);
  key('g');
  const field = one<HTMLInputElement>('.oc-line');
  expect(document.activeElement).toBe(field);
  field.value = '3000';
  key('Enter', {}, '.oc-line');
  await settle();
  expect(one('.oc-here').textContent).toBe('<b>3000</b>');
  expect(document.activeElement).toBe(one('.oc-lines'));
  key('End');
  await settle();
  expect(rows().at(-1)).toBe('5000 <b>5000</b>');
  press('Start');
  await settle();
  expect(rows()[0]).toBe('1 <b>1</b>');
});

test('adds what comes before and after, without a gap, and keeps a bounded number', async () => {
  await viewer.goTo(3000);
  // jsdom has no layout: everything is near both ends
  for (let i = 0; i < 8; i++) {
    one('.oc-lines').dispatchEvent(new Event('scroll'));
    await settle();
  }
  const numbers = rows().map(row => parseInt(row, 10));
  expect(numbers.every((n, i) => i === 0 || n === numbers[i - 1] + 1)).toBe(true);
  expect(numbers.length).toBe(KEPT_ROWS);
  expect(rows().every(row => row === `${parseInt(row, 10)} <b>${parseInt(row, 10)}</b>`)).toBe(true);
});

test('numbers are guessed until the lines are counted, then they are right', async () => {
  file.counted = 100;
  await viewer.goTo(0);
  expect(rows().at(-1)).toBe('~5000 <b>5000</b>');
  expect(one('.oc-place').textContent).toBe('line ~4,601 of 49 KB · lines counted to 2 %');
  file.counted = undefined;
  await jest.advanceTimersByTimeAsync(100);
  expect(rows().at(-1)).toBe('5000 <b>5000</b>');
  expect(one('.oc-place').textContent).toBe('line 4,601 of 5,000 lines, 49 KB');
  const asked = file.asked.length;
  await jest.advanceTimersByTimeAsync(60_000);
  expect(file.asked).toHaveLength(asked);
});

test('the rail shows any place at once', async () => {
  file.counted = 100;
  await viewer.goTo(1);
  [0.5, 0.6, 0.7].forEach(drag);
  await settle();
  const near = file.asked.filter(request => request.near !== undefined).map(request => request.near as number);
  expect(near.length).toBeLessThan(3);
  expect(near.at(-1)).toBeGreaterThan(near[0]);
  // still held, but the rows of the last place are there
  expect(one('.oc-place').textContent).toMatch(/^line ~?3,5\d{2} of /);
  drag(1);
  await settle();
  expect(rows().at(-1)).toContain('<b>5000</b>');
});

test('asks again while the line is looked for, and says how far it is', async () => {
  const waiting: ((reply: unknown) => void)[] = [];
  viewer = new Viewer(SPILL, new Source(SPILL.path, () => new Promise(resolve => waiting.push(resolve))));
  const done = viewer.goTo(3000);
  waiting[0]({ scanned: 250, bytes: 1000 });
  await settle();
  expect(one('.oc-place').textContent).toBe('looking for line 3,000: 25 %');
  waiting[1](await file.ask({ kind: 'page', path: '', line: 2980, count: 400 }));
  await done;
  expect(one('.oc-here').textContent).toContain('3000');
});

test('an answer that comes late does not take the place of a newer one', async () => {
  const waiting: ((reply: unknown) => void)[] = [];
  viewer = new Viewer(SPILL, new Source(SPILL.path, () => new Promise(resolve => waiting.push(resolve))));
  const first = viewer.goTo(1);
  const second = viewer.goTo(100);
  waiting[1](await file.ask({ kind: 'page', path: '', line: 80, count: 1 }));
  await second;
  waiting[0](await file.ask({ kind: 'page', path: '', line: 1, count: 1 }));
  await first;
  expect(rows()).toEqual(['80 <b>80</b>']);
});

test('follows what is written, until the person scrolls up or it ends', async () => {
  file.writing = true;
  viewer.follow(true);
  await settle();
  expect(one('.oc-writing').textContent).toBe('');
  file.lines = 5003;
  await jest.advanceTimersByTimeAsync(600);
  expect(rows().at(-1)).toBe('5003 <b>5003</b>');
  expect(one('.oc-writing').textContent).toBe('still being written, following');
  const text = one('.oc-lines');
  Object.defineProperty(text, 'scrollHeight', { value: 9000, configurable: true });
  text.scrollTop = 8000;
  text.dispatchEvent(new Event('scroll'));
  text.scrollTop = 7000;
  text.dispatchEvent(new Event('scroll'));
  expect(one('button[aria-label="Follow"]').getAttribute('aria-pressed')).toBe('false');
  await jest.advanceTimersByTimeAsync(600);
  expect(one('.oc-writing').textContent).toBe('still being written');
  press('Follow');
  await settle();
  file.writing = false;
  await jest.advanceTimersByTimeAsync(600);
  expect(one('.oc-writing').textContent).toBe('');
  expect(one('.oc-said-now').textContent).toBe('The output is complete.');
});

test('a file that was cut meanwhile is shown anew, an empty one says so, one that is gone too', async () => {
  file.writing = true;
  await viewer.goTo(4000);
  file.lines = 2;
  await jest.advanceTimersByTimeAsync(600);
  expect(one('.oc-said-now').textContent).toContain('replaced or truncated');
  file.lines = 0;
  await jest.advanceTimersByTimeAsync(600);
  expect(one('.oc-lines').textContent).toContain('The file is empty.');
  file.error = 'The file is not there any more.';
  await jest.advanceTimersByTimeAsync(600);
  expect(one('.oc-trouble').hidden).toBe(false);
  expect(one('.oc-trouble').textContent).toContain('not there any more');
});

test('finds: the next hit, the one before, around the end; the switches; the end', async () => {
  await viewer.goTo(1001);
  file.hits = [10, 2000, 3000];
  key('f', { ctrlKey: true });
  const field = one<HTMLInputElement>('.oc-word');
  expect(document.activeElement).toBe(field);
  field.value = 'a+';
  press('Regular expression');
  const enter = async (more = {}): Promise<string | null> => {
    key('Enter', more, '.oc-word');
    await settle();
    return one('.oc-here').textContent;
  };
  expect(await enter()).toBe('<b>2000</b>');
  const began = file.asked.find(request => request.text !== undefined);
  expect(began).toMatchObject({ kind: 'search', text: 'a+', regex: true, case: false, line: 1000 });
  expect(file.asked.at(-1)).toMatchObject({ kind: 'page', search: began?.id });
  expect(one('.oc-found').textContent).toBe('2 of 3 lines');
  expect(await enter()).toBe('<b>3000</b>');
  expect(await enter()).toBe('<b>10</b>');
  expect(one('.oc-found').textContent).toBe('1 of 3 lines · wrapped around');
  expect(await enter({ shiftKey: true })).toBe('<b>3000</b>');
  key('Escape', {}, '.oc-word');
  await settle();
  expect(file.asked.at(-1)).toMatchObject({ kind: 'search', id: began?.id, stop: true });
  expect(one('.oc-find').hidden).toBe(true);
  expect(document.activeElement).toBe(one('.oc-lines'));
});

test('a search with nothing to find says so, one that the kernel refuses says why', async () => {
  await viewer.goTo(1);
  key('/');
  one<HTMLInputElement>('.oc-word').value = 'x';
  key('Enter', {}, '.oc-word');
  await settle();
  expect(one('.oc-found').textContent).toBe('Not found');
  file.error = 'regex parse error';
  one<HTMLInputElement>('.oc-word').value = '(';
  key('Enter', {}, '.oc-word');
  await settle();
  expect(one('.oc-found').textContent).toBe('regex parse error');
});

test('colours go on from row to row, and hits lie across them', () => {
  const page: Page = {
    ...file.extent(), first: 1, lines: ['on\u001b[1m bold', 'still\u001b[0m off'], offsets: [0, 1], inside: [1], end: 2, more: false,
    style: '\u001b[31m', marks: [[0, 1, 4], [1, 0, 1], [1, 3, 7]]
  };
  const [first, second] = drawRows(page);
  expect(first.textContent).toBe('on bold');
  expect([...first.querySelectorAll('.oc-hit')].map(hit => hit.textContent)).toEqual(['n', ' b']);
  expect([...second.querySelectorAll('.oc-hit')].map(hit => hit.textContent)).toEqual(['s', 'll', ' o']);
  expect((second.querySelector('.oc-text > span') as HTMLElement).style.color).toBe('var(--oc-ansi-1)');
  expect((second.querySelector('.oc-text > span') as HTMLElement).style.fontWeight).toBe('600');
  expect(second.classList.contains('oc-inside')).toBe(true);
});

test('without a kernel it says so, where the file is, how to read it, and tries again', async () => {
  let there = false;
  viewer = new Viewer(SPILL, new Source(SPILL.path, async request => {
    if (!there) {
      throw new Error('No kernel is running here.');
    }
    return file.ask(request);
  }));
  await viewer.goTo(1001);
  const words = one('.oc-trouble').textContent as string;
  expect(words).toContain('No kernel is running here.');
  expect(words).toContain('/data/a b/tool_1');
  expect(words).toContain('%tool read "/data/a b/tool_1" offset=1001');
  there = true;
  press('try again');
  await settle();
  expect(one('.oc-trouble').hidden).toBe(true);
  expect(one('.oc-here').textContent).toContain('1001');
});

test('the whole comes in parts, up to a limit, and can be cancelled', async () => {
  const data = 'abcdefgh';
  const source = new Source('/p', async ({ offset }) => {
    const at = offset as number;
    return { data: btoa(data.slice(at, at + 3)), end: Math.min(data.length, at + 3), bytes: data.length };
  });
  const whole = await fetchFile(source, 100, () => true);
  expect(whole?.size).toBe(8);
  await expect(fetchFile(source, 7, () => true)).rejects.toThrow('/p');
  expect(await fetchFile(source, 100, () => false)).toBeUndefined();
});

describe('answers that are lost, late or of before', () => {
  /** Every request waits until the test answers it. */
  const open = () => {
    const waiting: { request: SpillRequest; answer: () => Promise<void>; fail: (error: Error) => void }[] = [];
    const ask = (request: SpillRequest): Promise<unknown> =>
      new Promise((resolve, reject) => waiting.push({ request, answer: async () => resolve(await file.ask(request)), fail: reject }));
    viewer = new Viewer(SPILL, new Source(SPILL.path, ask));
    return waiting;
  };
  const shown = (): string | null | undefined => one('.oc-here')?.textContent;

  test('a line that a silent kernel was asked for is shown when it answers again', async () => {
    const waiting = open();
    void viewer.goTo(4000);
    waiting[0].fail(new SilentError('The kernel does not answer.'));
    await settle();
    expect(one('.oc-trouble').textContent).toContain('does not answer');
    await jest.advanceTimersByTimeAsync(5_000);
    await waiting[1].answer();
    await settle();
    expect(one('.oc-trouble').hidden).toBe(true);
    expect(shown()).toBe('<b>4000</b>');
  });

  test('“try again” goes where the person wanted to go', async () => {
    const waiting = open();
    const first = viewer.goTo(1001);
    await waiting[0].answer();
    await first;
    void viewer.goTo(4000);
    const far = waiting.find(({ request }) => request.line === 3980);
    far?.fail(new Error('No kernel is running here.'));
    await settle();
    press('try again');
    expect(waiting.at(-1)?.request).toMatchObject({ kind: 'page', line: 3980 });
  });

  test('a place that the rail was dragged to before takes no line’s place', async () => {
    const waiting = open();
    const first = viewer.goTo(1);
    await waiting[0].answer();
    await first;
    [0.5, 0.6, 0.7].forEach(drag);
    void viewer.goTo(4000);
    for (let at = 1; at < waiting.length; at++) {
      await waiting[at].answer();
      await settle();
    }
    expect(shown()).toBe('<b>4000</b>');
  });

  test('a file that is cut while a far line is under way does not bring the line of before back', async () => {
    file.writing = true;
    const waiting = open();
    const first = viewer.goTo(100);
    await waiting[0].answer();
    await first;
    await jest.advanceTimersByTimeAsync(500);
    const look = waiting.find(({ request }) => request.kind === 'extent');
    void viewer.goTo(3000);
    file.lines = 4000;
    await look?.answer();
    await settle();
    for (let at = 1; at < waiting.length; at++) {
      await waiting[at].answer();
      await settle();
    }
    expect(shown()).toBe('<b>3000</b>');
  });

  test('whatever the order of the answers, the last line that was asked for is shown', async () => {
    file.lines = 60; // few rows are drawn quickly
    for (let seed = 1; seed <= 12; seed++) {
      let state = seed;
      const random = (below: number): number => (state = (state * 48271) % 2147483647) % below;
      const waiting = open();
      let last = 0;
      const answered = new Set<number>();
      const give = async (): Promise<void> => {
        const left = waiting.map((_, at) => at).filter(at => !answered.has(at));
        if (left.length) {
          const at = left[random(left.length)];
          answered.add(at);
          random(4) ? await waiting[at].answer() : waiting[at].fail(new SilentError('silent'));
          await settle();
        }
      };
      for (let step = 0; step < 12; step++) {
        random(3) ? await give() : void viewer.goTo((last = 1 + random(60)));
        random(5) || one('.oc-lines').dispatchEvent(new Event('scroll'));
      }
      void viewer.goTo((last = 1 + random(60)));
      for (let step = 0; step < 40 && !shown()?.includes(`>${last}<`); step++) {
        await give();
        answered.size < waiting.length || (await jest.advanceTimersByTimeAsync(5_000));
      }
      expect([seed, shown()]).toEqual([seed, `<b>${last}</b>`]);
      viewer.dispose();
    }
  }, 30_000);
});
