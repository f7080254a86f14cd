import { disposeCard, renderCard } from '../card';
import type { CardPart } from '../card';
import { part } from './gallery';

let root: HTMLElement;
const folded = (): string[] => [...root.querySelectorAll('.oc-folded .oc-title')].map(node => node.textContent ?? '');
const line = (): HTMLButtonElement | null => root.querySelector('.oc-fold');
const call = (n: number, state: object = {}, ui: object = {}): CardPart =>
  part({ status: 'completed', output: 'x', ...state }, { label: `f${n}`, ...ui }, { id: `p${n}`, tool: n % 2 ? 'read' : 'grep' });
const show = (...children: CardPart[]): void => renderCard(root, part({}, { children }));

beforeEach(() => {
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  disposeCard(root);
  root.remove();
});

test('three settled calls in a row are one line that a keyboard opens', () => {
  show(call(1), call(2), call(3));
  expect(line()?.textContent).toBe('3 completed calls: read ×2, grep');
  expect(line()?.getAttribute('aria-expanded')).toBe('false');
  expect(folded()).toEqual(['f1', 'f2', 'f3']);
  line()?.focus();
  line()?.click();
  expect(folded()).toEqual([]);
  show(call(1), call(2), call(3), call(4));
  expect(folded()).toEqual([]); // stays open as it grows
  expect(line()?.textContent).toBe('4 completed calls: read ×2, grep ×2');
});

test('running, failed and stopped calls never are, and two are too few', () => {
  show(call(1), call(2), call(3, { status: 'running' }), call(4), call(5), call(6, { status: 'error', error: 'x' }));
  expect(line()).toBeNull();
  show(call(1), call(2), call(3), call(4, { status: 'error', error: 'x' }), call(5, {}, { outcome: 'stopped' }));
  expect(folded()).toEqual(['f1', 'f2', 'f3']);
  expect([...root.querySelectorAll('.oc-nest > *')].map(node => node.className)).toEqual([
    'oc-fold', 'oc-folded', 'oc-folded', 'oc-folded', '', ''
  ]);
});

test('a call that a person is in stays', () => {
  show(call(1), call(2));
  (root.querySelector('.oc-nest .oc-card') as HTMLElement).focus();
  show(call(1), call(2), call(3));
  expect(folded()).toEqual([]);
  expect(line()?.getAttribute('aria-expanded')).toBe('true');
});
