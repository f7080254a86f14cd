import { outputPieces } from '../card/output';
import { drawLong, WHOLE_LINES } from '../card/long';
import { drawOutput } from '../card/output';

const numbered = (n: number): string => Array.from({ length: n }, (_, at) => `line ${at}`).join('\n');
let host: HTMLElement;
let near: ((nodes: Element[], on: boolean) => void) | undefined;

beforeEach(() => {
  near = undefined;
  (globalThis as { IntersectionObserver?: unknown }).IntersectionObserver = class {
    constructor(told: (entries: unknown[]) => void) {
      near = (nodes, isIntersecting) => told(nodes.map(target => ({ target, isIntersecting })));
    }
    observe(): void {}
    disconnect(): void {}
  };
  host = document.createElement('pre');
  document.body.append(host);
});

afterEach(() => {
  delete (globalThis as { IntersectionObserver?: unknown }).IntersectionObserver;
  host.remove();
});

function copied(): string {
  let text = '';
  const event = new Event('copy', { bubbles: true, cancelable: true });
  Object.assign(event, { clipboardData: { setData: (_: string, value: string) => (text = value) } });
  host.dispatchEvent(event);
  return text;
}

test('a short output is in the page as a whole, its colours kept over pieces', () => {
  drawOutput(host, `\u001b[31m${numbered(120)}\u001b[0m!`);
  expect(host.textContent).toBe(`${numbered(120)}!`);
  expect([...host.querySelectorAll('span')].every(span => span.style.color === 'var(--oc-ansi-1)')).toBe(true);
});

test('of a long one only what is near is in the page; a search puts all of it in', () => {
  drawOutput(host, numbered(5_000));
  const chunks = [...host.querySelectorAll<HTMLElement>('.oc-chunk')];
  expect(chunks.length).toBeGreaterThan(50);
  expect(chunks.filter(chunk => chunk.textContent).length).toBe(1);
  near?.([chunks[40]], true);
  expect(chunks[40].textContent).toContain('line 2400');
  expect(chunks[41].style.height).not.toBe('');
  document.dispatchEvent(new KeyboardEvent('keydown', { key: 'f', ctrlKey: true }));
  expect(chunks.every(chunk => chunk.textContent)).toBe(true);
});

test('a selection over pieces that are not there is copied whole', () => {
  drawOutput(host, numbered(5_000));
  const chunks = [...host.querySelectorAll('.oc-chunk')];
  near?.([chunks[0], chunks[chunks.length - 1]], true);
  getSelection()?.selectAllChildren(host);
  expect(copied()).toBe(numbered(5_000));
  const range = document.createRange();
  range.setStart(chunks[0].firstChild as Text, 'line 0\nli'.length);
  range.setEnd(chunks[chunks.length - 1].firstChild as Text, 4);
  getSelection()?.removeAllRanges();
  getSelection()?.addRange(range);
  const text = copied();
  expect(text.startsWith('ne 1\nline 2\n')).toBe(true);
  expect(text.split('\n')).toHaveLength(4_980);
});

test('a line of a megabyte is cut into pieces, nothing is lost', () => {
  const line = `${'é😀'.repeat(200_000)}end`;
  const pieces = outputPieces(`first\n${line}\nlast`);
  expect(Math.max(...pieces.map(piece => piece.characters))).toBeLessThanOrEqual(6_001);
  expect(pieces.map(piece => piece.text() + (piece.open ? '' : '\n')).join('')).toBe(`first\n${line}\nlast\n`);
});

test('many changes of colour are many pieces', () => {
  const pieces = outputPieces('\u001b[31mx\u001b[32my'.repeat(2_000));
  expect(pieces.length).toBeGreaterThan(5);
  expect(pieces.map(piece => piece.text()).join('')).toBe('xy'.repeat(2_000));
});

test('what grows long is cut, what shrinks is whole again', () => {
  drawOutput(host, 'x');
  drawOutput(host, numbered(WHOLE_LINES + 100));
  expect(host.classList.contains('oc-long')).toBe(true);
  drawOutput(host, 'short');
  expect(host.classList.contains('oc-long')).toBe(false);
  expect(host.textContent).toBe('short');
  drawLong(host, []);
  expect(host.textContent).toBe('');
});
