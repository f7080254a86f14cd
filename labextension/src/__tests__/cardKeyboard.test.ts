import { focusedCard, focusGuarded, handleCardKeyboard } from '../panel/approvals/cardKeyboard';
import { disposeCard, renderCard } from '../card';
import { GUARD_MS } from '../card/approvalView';
import { SAY_MS } from '../card/progress';
import { updateTail } from '../card';
import { ASK, part } from './gallery';

const SUPPRESS = 'data-lm-suppress-shortcuts';
const reply = jest.fn();
let cell: HTMLElement;
let area: HTMLElement;

/** A card in the cell's outputs, as JupyterLab has them. */
function output(ui = {}, more = {}): HTMLElement {
  const root = document.createElement('div');
  area.append(root);
  renderCard(root, { ...part({}, ui), ...more }, { reply, stop: reply });
  return root;
}
const card = (root: Element): HTMLElement => root.querySelector('.oc-card') as HTMLElement;
const named = (root: Element, name: string): HTMLButtonElement => root.querySelector(`[aria-label="${name}"]`) as HTMLButtonElement;
const press = (target: Element, init: KeyboardEventInit): void =>
  void target.dispatchEvent(new KeyboardEvent('keydown', { bubbles: true, composed: true, cancelable: true, ...init }));
/** What watches changes has heard of them. */
const settled = async (ms = 100): Promise<void> => {
  await jest.advanceTimersByTimeAsync(ms);
};

beforeAll(() => handleCardKeyboard());

beforeEach(() => {
  jest.useFakeTimers({ now: 1_004_000 });
  reply.mockReset();
  cell = document.createElement('div');
  cell.className = 'jp-Cell';
  cell.tabIndex = -1;
  area = document.createElement('div');
  area.className = 'jp-Cell-outputArea';
  cell.append(area);
  document.body.append(cell);
});

afterEach(() => {
  area.querySelectorAll('div').forEach(root => disposeCard(root));
  cell.remove();
  jest.useRealTimers();
});

test('plain keys in a card are its own; with Ctrl or Alt, and arrows on a card that asks nothing, they are JupyterLab’s', () => {
  const root = output({ ask: ASK });
  const button = named(root, 'Deny');
  press(button, { key: 'ArrowDown' });
  expect([button.hasAttribute(SUPPRESS), card(root).hasAttribute(SUPPRESS)]).toEqual([true, true]);
  press(button, { key: 'C', ctrlKey: true, shiftKey: true });
  expect([button.hasAttribute(SUPPRESS), card(root).hasAttribute(SUPPRESS)]).toEqual([false, false]);
  const quiet = card(output());
  press(quiet, { key: 'ArrowDown' });
  expect(quiet.hasAttribute(SUPPRESS)).toBe(false);
  press(quiet, { key: '1' });
  expect(quiet.hasAttribute(SUPPRESS)).toBe(true);
});

test('a card that goes away gives the focus back to its cell, and Escape leaves a card that asks nothing', async () => {
  const root = output();
  card(root).focus();
  root.remove();
  await settled();
  expect(document.activeElement).toBe(cell);
  const other = card(output());
  other.focus();
  press(other, { key: 'Escape' });
  expect(document.activeElement).toBe(cell);
});

test('the next request of the cell takes it, dead at first; a request that comes later takes no focus', async () => {
  const root = output({ ask: ASK });
  await settled(GUARD_MS);
  const next = output({ ask: { ...ASK, id: 'per_2' } }, { id: 'prt_2', callID: 'call_2' });
  await settled(GUARD_MS);
  named(root, 'Allow once').focus();
  press(named(root, 'Allow once'), { key: '1' });
  expect(document.activeElement).toBe(card(root)); // its buttons are disabled
  root.remove();
  await settled(60);
  expect(document.activeElement).toBe(card(next));
  press(card(next), { key: '1' });
  expect(reply).toHaveBeenCalledTimes(1);
  await settled(GUARD_MS);
  press(card(next), { key: '1' });
  expect(reply).toHaveBeenCalledTimes(2);
  next.remove();
  await settled(3_000);
  expect(document.activeElement).toBe(cell);
  output({ ask: { ...ASK, id: 'per_3' } }, { id: 'prt_3', callID: 'call_3' });
  await settled();
  expect(document.activeElement).toBe(cell);
});

test('Stop, once pressed, leaves the focus in the card', () => {
  const root = output();
  named(root, 'Stop').focus();
  named(root, 'Stop').click();
  expect(document.activeElement).toBe(card(root));
});

test('a press on a button moves no focus; like one on a text field, and unlike one on text, it does not reach the notebook', () => {
  const reached = jest.fn();
  cell.classList.add('jp-Notebook');
  cell.addEventListener('mousedown', reached);
  const root = output({ ask: ASK, by: 'model' });
  const down = (target: Element): boolean =>
    target.dispatchEvent(new MouseEvent('mousedown', { bubbles: true, cancelable: true, composed: true }));
  expect([down(named(root, 'Allow once')), down(named(root, 'Stop'))]).toEqual([false, false]);
  expect(reached).not.toHaveBeenCalled();
  expect(down(root.querySelector('.oc-word') as Element)).toBe(true);
  expect(reached).not.toHaveBeenCalled();
  expect(down(root.querySelector('.oc-title') as Element)).toBe(true);
  expect(reached).toHaveBeenCalledTimes(1);
});

test('the notebook sees neither the focus in a card nor what is typed there, but the page gets its shortcuts', () => {
  const [panel, focus, left, keys, shortcuts] = [document.createElement('div'), jest.fn(), jest.fn(), jest.fn(), jest.fn()];
  cell.classList.add('jp-Notebook');
  document.body.append(panel);
  panel.append(cell);
  cell.addEventListener('focusin', focus);
  cell.addEventListener('focusout', left);
  cell.addEventListener('keydown', keys);
  panel.addEventListener('keydown', shortcuts);
  const word = output({ ask: ASK, by: 'model' }).querySelector('.oc-word') as HTMLElement;
  word.focus();
  expect(focus).not.toHaveBeenCalled();
  expect(left.mock.calls.map(([{ relatedTarget }]) => relatedTarget)).toEqual([word]);
  press(word, { key: 'd' });
  expect(shortcuts).not.toHaveBeenCalled();
  press(word, { key: 's', ctrlKey: true });
  expect(shortcuts).toHaveBeenCalledTimes(1);
  expect([shortcuts.mock.calls[0][0].target, shortcuts.mock.calls[0][0].key]).toEqual([panel, 's']);
  expect(keys).not.toHaveBeenCalled();
  panel.remove();
});

test('the palette takes the focus for a moment only', () => {
  const root = card(output({ ask: ASK }));
  const palette = document.createElement('div');
  palette.className = 'lm-CommandPalette';
  const field = document.createElement('input');
  palette.append(field);
  document.body.append(palette);
  root.focus();
  field.focus();
  expect(focusedCard()).toBe(root);
  cell.focus();
  expect(focusedCard()).toBeNull();
  palette.remove();
});

test('what is asked is told with the card’s name', () => {
  const root = output({ ask: ASK });
  expect(card(root).getAttribute('aria-description')).toContain('Edit this file? src/clean.py');
  renderCard(root, part());
  expect(card(root).hasAttribute('aria-description')).toBe(false);
  focusGuarded(card(root));
  expect(document.activeElement).toBe(card(root));
});

test('progress is spoken every ten seconds, not at each of twenty updates a second', () => {
  const root = output({ progress: { value: 0, total: 600, message: 'begins' } });
  const said = root.querySelector('.oc-sr[role=status]') as HTMLElement;
  const heard: string[] = [];
  for (let n = 1; n <= 600; n++) {
    jest.advanceTimersByTime(50);
    updateTail(root, { text: '', progress: { value: n, total: 600, message: `row ${n}` } });
    if (said.textContent && said.textContent !== heard[heard.length - 1]) {
      heard.push(said.textContent);
    }
  }
  expect(heard).toEqual(['33 percent, row 200', '67 percent, row 400', '100 percent, row 600']);
  expect(SAY_MS).toBe(10_000);
  expect(root.querySelector('.oc-bar')?.getAttribute('aria-valuetext')).toBe('100 percent, row 600');
  renderCard(root, part({ status: 'completed', output: 'ok' }));
  expect(said.textContent).toBe('');
});
