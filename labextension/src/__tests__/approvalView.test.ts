import { disposeCard, renderCard } from '../card';
import { GUARD_MS, RETRY_MS } from '../card/approvalView';
import type { CardDecision } from '../card';
import { ASK, part } from './gallery';

let root: HTMLElement;
const reply = jest.fn();
const named = (name: string): HTMLButtonElement => {
  const found = [...root.querySelectorAll('button')].find(button => button.getAttribute('aria-label') === name);
  return found as HTMLButtonElement;
};
const word = (): HTMLInputElement => root.querySelector('input[placeholder]') as HTMLInputElement;
const note = (): string => root.querySelector('.oc-note')?.textContent ?? '';
const press = (key: string, target?: Element): void => {
  (target ?? (root.querySelector('.oc-card') as Element)).dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
};
const asking = part({}, { ask: ASK, by: 'model' });

beforeEach(() => {
  jest.useFakeTimers({ now: 1_004_000 });
  reply.mockReset();
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  disposeCard(root);
  root.remove();
  jest.useRealTimers();
});

function ask(): void {
  renderCard(root, asking, { reply });
  jest.advanceTimersByTime(GUARD_MS);
}

test('says what is asked, why, and for how long it has waited', () => {
  ask();
  expect(root.querySelector('.oc-state')?.textContent).toBe('waiting for approval');
  expect(root.querySelector('.oc-time')?.textContent).toBe('waiting 0:04');
  expect(root.querySelector('.oc-question')?.textContent).toContain('Edit this file? src/clean.py');
  expect(root.querySelector('.oc-why')?.textContent).toBe("rule edit *: ask from this notebook's default");
  expect(root.querySelectorAll('.oc-ask .oc-row')).toHaveLength(4);
  expect(root.querySelector('.oc-ask')?.getAttribute('role')).toBe('region');
});

test('an own permission shows its pattern, whatever file the request names', () => {
  renderCard(root, part({}, { ask: { ...ASK, permission: 'deploy', question: '', patterns: ['production'] } }), { reply });
  expect(root.querySelector('.oc-question')?.textContent).toContain('Allow deploy? production');
});

test('the buttons have exactly these names', () => {
  ask();
  const names = [...root.querySelectorAll('.oc-ask .oc-step:not([hidden]) button')].map(b => b.getAttribute('aria-label'));
  expect(names).toEqual(['Allow once', 'Allow for this session…', 'Deny']);
  expect(word().placeholder).toBe('Reason (sent to the model)');
});

test('a denial carries a reason only where a model called, and the page’s shortcuts are told', () => {
  const keys = () => ({ once: 'Alt+Shift+O', deny: 'Alt+Shift+D' });
  renderCard(root, part({}, { ask: ASK, by: 'user' }), { reply, keys });
  expect(word()).toBeNull();
  expect(named('Allow once').title).toBe('Alt+Shift+O from anywhere in the page');
  expect(root.querySelector('.oc-keys')?.textContent).toBe('Alt+Shift+O allows once, Alt+Shift+D denies');
});

test('the buttons are dead for 300 ms and take no focus', () => {
  const elsewhere = document.createElement('input');
  document.body.append(elsewhere);
  elsewhere.focus();
  renderCard(root, asking, { reply });
  expect(named('Allow once').disabled).toBe(true);
  named('Allow once').click();
  press('1');
  jest.advanceTimersByTime(299);
  expect(named('Allow once').disabled).toBe(true);
  expect(reply).not.toHaveBeenCalled();
  jest.advanceTimersByTime(1);
  expect(named('Allow once').disabled).toBe(false);
  expect(document.activeElement).toBe(elsewhere);
  elsewhere.remove();
});

test('Allow once answers once, the buttons go dead, a second click does nothing', () => {
  ask();
  named('Allow once').click();
  named('Allow once').click();
  named('Deny').click();
  expect(reply).toHaveBeenCalledTimes(1);
  expect(reply).toHaveBeenCalledWith(ASK, 'once', {});
  expect(named('Deny').disabled).toBe(true);
  expect(note()).toBe('Sent…');
});

test('an answer that the kernel does not take can be given again', () => {
  ask();
  named('Allow once').click();
  jest.advanceTimersByTime(RETRY_MS);
  expect(note()).toContain('again');
  named('Allow once').click();
  expect(reply).toHaveBeenCalledTimes(2);
});

test('Deny carries the word', () => {
  ask();
  word().value = ' only build/cache ';
  named('Deny').click();
  expect(reply).toHaveBeenCalledWith(ASK, 'reject', { message: 'only build/cache' });
});

test('Enter in the word denies with it; digits typed there answer nothing', () => {
  ask();
  word().focus();
  press('1', word());
  expect(reply).not.toHaveBeenCalled();
  word().value = 'no';
  press('Enter', word());
  expect(reply).toHaveBeenCalledWith(ASK, 'reject', { message: 'no' });
});

test('for this session: the exact patterns first, as a person edits them', () => {
  ask();
  named('Allow for this session…').click();
  expect(reply).not.toHaveBeenCalled();
  const fields = [...root.querySelectorAll<HTMLInputElement>('.oc-patterns input')];
  expect(fields.map(field => field.value)).toEqual(['src/*', 'tests/*']);
  expect(named('Allow these for this session').disabled).toBe(true);
  jest.advanceTimersByTime(GUARD_MS);
  fields[0].value = 'src/clean.py';
  fields[1].value = '';
  named('Allow these for this session').click();
  expect(reply).toHaveBeenCalledWith(ASK, 'always', { patterns: ['src/clean.py'], scope: 'session' });
});

test('for this session: back, nothing left to allow, and the whole project', () => {
  ask();
  named('Allow for this session…').click();
  jest.advanceTimersByTime(GUARD_MS);
  named('Back').click();
  expect(root.querySelector<HTMLElement>('.oc-patterns')?.closest<HTMLElement>('.oc-step')?.hidden).toBe(true);
  jest.advanceTimersByTime(GUARD_MS);
  named('Allow for this session…').click();
  jest.advanceTimersByTime(GUARD_MS);
  const fields = [...root.querySelectorAll<HTMLInputElement>('.oc-patterns input')];
  fields.forEach(field => (field.value = ''));
  named('Allow these for this session').click();
  expect(reply).not.toHaveBeenCalled();
  expect(note()).toContain('No pattern is left');
  fields[0].value = 'src/*';
  named('Always in this project').click();
  expect(reply).toHaveBeenCalledWith(ASK, 'always', { patterns: ['src/*'], scope: 'project' });
});

test('without patterns to remember, the session is not offered', () => {
  renderCard(root, part({}, { ask: { ...ASK, always: [] } }), { reply });
  jest.advanceTimersByTime(GUARD_MS);
  expect(named('Allow for this session…')).toBeUndefined();
  press('2');
  expect(reply).not.toHaveBeenCalled();
});

test.each([
  ['1', 'once'],
  ['3', 'reject'],
  ['Escape', 'reject']
])('key %s in the card answers %s', (key, answer) => {
  ask();
  press(key);
  expect(reply).toHaveBeenCalledWith(ASK, answer, {});
});

test('key 2 opens the patterns, Escape goes back, and the focus that was in the card stays in it', () => {
  ask();
  named('Deny').focus();
  press('2');
  expect((document.activeElement as HTMLInputElement).value).toBe('src/*');
  press('Escape', document.activeElement as Element);
  expect(root.contains(document.activeElement)).toBe(true);
  expect(reply).not.toHaveBeenCalled();
});

test('Escape in open details closes them and denies nothing', () => {
  ask();
  const details = root.querySelector('.oc-input') as HTMLDetailsElement;
  details.open = true;
  const pre = details.querySelector('pre') as HTMLElement;
  pre.focus();
  press('Escape', pre);
  expect(details.open).toBe(false);
  expect(document.activeElement).toBe(details.querySelector('summary'));
  expect(reply).not.toHaveBeenCalled();
});

test('keys outside the card, with a modifier, or repeated answer nothing', () => {
  ask();
  document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '1', bubbles: true }));
  const card = root.querySelector('.oc-card') as Element;
  card.dispatchEvent(new KeyboardEvent('keydown', { key: '1', ctrlKey: true, bubbles: true }));
  card.dispatchEvent(new KeyboardEvent('keydown', { key: '1', repeat: true, bubbles: true }));
  expect(reply).not.toHaveBeenCalled();
});

test('JupyterLab’s own keys stay away only while the card asks', () => {
  ask();
  const card = root.querySelector('.oc-card') as Element;
  expect(card.hasAttribute('data-lm-suppress-shortcuts')).toBe(true);
  renderCard(root, part());
  expect(card.hasAttribute('data-lm-suppress-shortcuts')).toBe(false);
});

test('an update while it asks keeps the nodes, the focus and what is typed', () => {
  ask();
  const input = word();
  input.focus();
  input.value = 'please only';
  const diff = root.querySelector('.oc-ask pre');
  for (let n = 1; n <= 20; n++) {
    renderCard(root, part({}, { ask: { ...ASK, position: [1, n] }, tail: `line ${n}`, lines: n }));
  }
  expect(word()).toBe(input);
  expect(input.value).toBe('please only');
  expect(document.activeElement).toBe(input);
  expect(root.querySelector('.oc-ask pre')).toBe(diff);
  expect(root.querySelector('.oc-place')?.textContent).toBe('1 of 20 waiting');
});

test('another ask is asked anew, with its own guard', () => {
  ask();
  named('Allow once').click();
  renderCard(root, part({}, { ask: { ...ASK, id: 'per_2' } }));
  expect(named('Allow once').disabled).toBe(true);
  expect(note()).toBe('');
  jest.advanceTimersByTime(GUARD_MS);
  named('Allow once').click();
  expect(reply).toHaveBeenLastCalledWith(expect.objectContaining({ id: 'per_2' }), 'once', {});
});

test('decided elsewhere: the question goes, the card says who decided, the focus stays in the card', () => {
  ask();
  word().focus();
  const decision: CardDecision = { permission: 'edit', patterns: [], action: 'deny', by: 'time limit', reply: 'reject' };
  renderCard(root, part({ status: 'error', error: 'x' }, { outcome: 'denied by a rule', decisions: [decision] }));
  expect(root.querySelector('.oc-ask')).toBeNull();
  expect(root.querySelector('.oc-decisions')?.textContent).toBe('denied by time limit');
  expect(document.activeElement).toBe(root.querySelector('.oc-card'));
  jest.advanceTimersByTime(RETRY_MS);
  expect(jest.getTimerCount()).toBe(0);
});

test('a card without callbacks asks nothing', () => {
  renderCard(root, asking);
  expect(root.querySelectorAll('.oc-ask button:not(.oc-copy), .oc-ask input')).toHaveLength(0);
  press('1');
  expect(root.querySelector('.oc-question')).not.toBeNull();
});

test('what is asked shows its unseen characters', () => {
  const sly = { ...ASK, permission: 'bash', command: 'ls \u202egpj.exe\u200b\nrm x', patterns: ['ls \u202e'], always: ['l\u200bs *'] };
  renderCard(root, part({}, { ask: { ...sly, diff: undefined, path: undefined } }), { reply });
  jest.advanceTimersByTime(GUARD_MS);
  expect(root.querySelector('.oc-ask pre')?.textContent).toBe('ls \\u202egpj.exe\\u200b\nrm x');
  expect(root.querySelector('.oc-question code')?.textContent).toBe('ls \\u202e');
  named('Allow for this session…').click();
  expect(root.querySelector('.oc-patterns')?.textContent).toContain('contains invisible characters: l\\u200bs *');
});

test('several commands are listed, each with the rule that decides it', () => {
  const allow = { permission: 'bash', pattern: 'git *', action: 'allow' as const, origin: 'opencode.json' };
  const wait = { permission: 'bash', pattern: '*', action: 'ask' as const, origin: '' };
  const line = { ...ASK, permission: 'bash', patterns: ['git status', 'make'], rule: wait, rules: [allow, wait] };
  renderCard(root, part({}, { ask: { ...line, diff: undefined, path: undefined, command: 'git status && make' } }), { reply });
  const items = [...root.querySelectorAll('.oc-each li')];
  expect(items.map(item => item.textContent)).toEqual([
    'git status rule bash git *: allow from opencode.json',
    'make rule bash *: ask'
  ]);
  expect(items.map(item => item.className)).toEqual(['', 'oc-asked']);
  expect(root.querySelectorAll('.oc-ask .oc-strip > .oc-why')).toHaveLength(0);
});

test('code of a project is trusted, not allowed once', () => {
  const trust = { ...ASK, permission: 'trust', question: 'Trust this project’s code until it changes?', patterns: ['/p/.opencode/tool/x.py'], always: [], command: 'def x():\n    ...' };
  renderCard(root, part({}, { ask: { ...trust, rule: undefined, diff: undefined } }), { reply });
  jest.advanceTimersByTime(GUARD_MS);
  const names = [...root.querySelectorAll('.oc-ask .oc-step:not([hidden]) button')].map(b => b.getAttribute('aria-label'));
  expect(names).toEqual(['Trust', 'Deny']);
  expect(root.querySelector('.oc-question')?.textContent).toContain('until it changes? /p/.opencode/tool/x.py');
  expect(root.querySelector('.oc-ask pre')?.textContent).toContain('def x():');
  named('Trust').click();
  expect(reply).toHaveBeenCalledWith(expect.objectContaining({ permission: 'trust' }), 'once', {});
});
