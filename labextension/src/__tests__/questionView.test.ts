import { disposeCard, renderCard } from '../card';
import { GUARD_MS, RETRY_MS } from '../card/requestView';
import type { CardQuestions } from '../card';
import { batch, part, QUESTION } from './gallery';

let root: HTMLElement;
const answer = jest.fn();
const dismiss = jest.fn();
const reply = jest.fn();
const stop = jest.fn();
const callbacks = { answer, dismiss, reply, stop };
const all = <T extends HTMLElement>(selector: string): T[] => [...root.querySelectorAll<T>(selector)];
const named = (name: string): HTMLButtonElement => all<HTMLButtonElement>('button').find(b => b.getAttribute('aria-label') === name)!;
const note = (): string => all('.oc-note').map(node => node.textContent).join('');
const choices = (): HTMLInputElement[] => all<HTMLInputElement>('.oc-choice');
const press = (key: string, target?: Element): void => {
  (target ?? (root.querySelector('.oc-card') as Element)).dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
};

function ask(question: Partial<CardQuestions> = {}): void {
  renderCard(root, part({}, { question: { ...QUESTION, ...question } }, { tool: 'question' }), callbacks);
  jest.advanceTimersByTime(GUARD_MS);
}

const ONE = { questions: [QUESTION.questions[0]] };

beforeEach(() => {
  jest.useFakeTimers({ now: 1_004_000 });
  [answer, dismiss, reply, stop].forEach(mock => mock.mockReset());
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  disposeCard(root);
  root.remove();
  jest.useRealTimers();
});

test('shows headers, questions, options with what they mean, and that it waits', () => {
  ask({ position: [2, 3] });
  expect(all('.oc-state')[0].textContent).toBe('waiting for an answer');
  expect(all('.oc-time')[0].textContent).toBe('waiting 0:04');
  expect(all('.oc-chip').map(n => n.textContent)).toEqual(['Database', 'Formats']);
  expect(all('.oc-question b').map(n => n.textContent)).toEqual(QUESTION.questions.map(q => q.question));
  expect(all('.oc-label').map(n => n.textContent)).toEqual(['SQLite (Recommended)', 'PostgreSQL', 'CSV', 'Parquet']);
  expect(all('.oc-option .oc-why').map(n => n.textContent)).toEqual(['one file, nothing to install', 'a server', 'needs pyarrow']);
  expect(choices().map(n => n.type)).toEqual(['radio', 'radio', 'radio', 'checkbox', 'checkbox', 'checkbox']);
  expect(all('.oc-place')[0].textContent).toBe('2 of 3 waiting');
  expect(all<HTMLInputElement>('.oc-word').map(n => n.placeholder)).toEqual(['Type your own answer', 'Type your own answer']);
  expect(all('[role=radiogroup], [role=group].oc-q').map(n => n.getAttribute('aria-label'))).toEqual(QUESTION.questions.map(q => q.question));
});

test('everything is dead for 300 ms and takes no focus', () => {
  const elsewhere = document.createElement('input');
  document.body.append(elsewhere);
  elsewhere.focus();
  renderCard(root, part({}, { question: { ...QUESTION, ...ONE } }), callbacks);
  expect([...choices(), named('Dismiss')].every(control => control.disabled)).toBe(true);
  press('1');
  press('Enter');
  named('Dismiss').click();
  jest.advanceTimersByTime(GUARD_MS);
  expect([answer, dismiss].every(mock => mock.mock.calls.length === 0)).toBe(true);
  expect(choices().some(choice => choice.checked)).toBe(false);
  expect(document.activeElement).toBe(elsewhere);
  elsewhere.remove();
});

test('one choice, answered by the button; nothing to send while nothing is chosen', () => {
  ask(ONE);
  expect(named('Answer').disabled).toBe(true);
  choices()[1].click();
  expect(named('Answer').disabled).toBe(false);
  named('Answer').click();
  named('Answer').click();
  named('Dismiss').click();
  expect(answer).toHaveBeenCalledTimes(1);
  expect(answer).toHaveBeenCalledWith(expect.objectContaining({ id: 'que_1' }), [['PostgreSQL']]);
  expect(dismiss).not.toHaveBeenCalled();
  expect(note()).toBe('Sent…');
  jest.advanceTimersByTime(RETRY_MS);
  expect(named('Answer').disabled).toBe(false);
});

test('several choices and own words', () => {
  ask();
  const [own, ownFormats] = all<HTMLInputElement>('.oc-word');
  own.value = ' DuckDB ';
  own.dispatchEvent(new Event('input'));
  expect(choices()[2].checked).toBe(true);
  choices()[3].click();
  choices()[4].click();
  ownFormats.value = 'Arrow';
  ownFormats.dispatchEvent(new Event('input'));
  named('Answer').click();
  expect(answer).toHaveBeenCalledWith(expect.anything(), [['DuckDB'], ['CSV', 'Parquet', 'Arrow']]);
});

test('another choice takes the place of own words, which stay typed', () => {
  ask(ONE);
  const own = all<HTMLInputElement>('.oc-word')[0];
  own.value = 'DuckDB';
  own.dispatchEvent(new Event('input'));
  choices()[0].click();
  press('Enter');
  expect(answer).toHaveBeenCalledWith(expect.anything(), [['SQLite (Recommended)']]);
  expect(own.value).toBe('DuckDB');
});

test('a question left open is told before it is sent', () => {
  ask();
  choices()[0].click();
  named('Answer').click();
  expect(answer).not.toHaveBeenCalled();
  expect(note()).toContain('1 question is not answered');
  named('Answer').click();
  expect(answer).toHaveBeenCalledWith(expect.anything(), [['SQLite (Recommended)'], []]);
});

test('by keyboard: numbers choose in the open question, Enter answers', () => {
  ask();
  press('Enter');
  expect(note()).toBe('Choose an answer or dismiss.');
  press('2');
  expect(choices()[1].checked).toBe(true);
  press('1');
  press('2');
  expect(choices().map(choice => choice.checked)).toEqual([false, true, false, true, true, false]);
  press('1', choices()[3]);
  press('9');
  press('Enter', choices()[3]);
  expect(answer).toHaveBeenCalledWith(expect.anything(), [['PostgreSQL'], ['Parquet']]);
});

test('digits typed into own words choose nothing; Enter there answers, on a button it presses that', () => {
  ask(ONE);
  const own = all<HTMLInputElement>('.oc-word')[0];
  press('1', own);
  expect(choices()[0].checked).toBe(false);
  own.value = '12';
  own.dispatchEvent(new Event('input'));
  press('Enter', named('Dismiss'));
  expect(answer).not.toHaveBeenCalled();
  press('Enter', own);
  expect(answer).toHaveBeenCalledWith(expect.anything(), [['12']]);
});

test('Dismiss', () => {
  ask();
  named('Dismiss').click();
  expect(dismiss).toHaveBeenCalledWith(expect.objectContaining({ id: 'que_1', digest: 'sha' }));
  expect(answer).not.toHaveBeenCalled();
});

test('own words only where they are taken; without options only they', () => {
  ask({ questions: [{ question: 'Go on?', header: '', options: [{ label: 'Yes', description: '' }], custom: false }] });
  expect(all('.oc-word')).toHaveLength(0);
  expect(all('.oc-chip')).toHaveLength(0);
  ask({ id: 'que_2', questions: [{ question: 'Why?', header: '', options: [] }] });
  expect(choices()).toHaveLength(1);
  expect(all('.oc-word')).toHaveLength(1);
});

test('what is chosen stays when only its place in the queue changes', () => {
  ask({ position: [2, 2] });
  choices()[0].click();
  ask({ position: [1, 1] });
  expect(choices()[0].checked).toBe(true);
  expect(all('.oc-place')[0].textContent).toBe('');
});

test('without callbacks it can only be read', () => {
  renderCard(root, part({}, { question: QUESTION }));
  expect(all('.oc-ask button, .oc-ask input')).toHaveLength(0);
  expect(all('.oc-label')).toHaveLength(4);
  press('1');
  press('Enter');
});

test('what is asked shows its unseen characters and no markup', () => {
  const evil = '<img src=x onerror=alert(1)>\u202e\u200b';
  ask({ questions: [{ question: evil, header: evil, options: [{ label: evil, description: evil }] }] });
  expect(root.querySelectorAll('img')).toHaveLength(0);
  expect(all('.oc-ask')[0].textContent).not.toMatch(/[\u202e\u200b]/);
  expect(all('.oc-label')[0].textContent).toContain('\\u202e\\u200b');
  choices()[0].click();
  named('Answer').click();
  expect(answer).toHaveBeenCalledWith(expect.anything(), [[evil]]);
});

test('answered: each question with what was said; dismissed and open ones say so', () => {
  const questions = QUESTION.questions.map(({ question, header }) => ({ question, header }));
  renderCard(
    root,
    part({ status: 'completed', output: 'User has answered' }, {
      answered: [
        { questions, answers: [['SQLite'], []], by: 'card' },
        { questions: [questions[1]], by: 'prompt' }
      ]
    })
  );
  expect(all('dt').map(n => n.textContent)).toEqual(['Database Which database should the cache use?', 'Formats Which formats are written?', 'Formats Which formats are written?']);
  expect(all('dd').map(n => n.textContent)).toEqual(['SQLite', 'not answered', 'dismissed']);
  expect(root.querySelector('.oc-out')?.parentElement).toHaveProperty('hidden', true);
  expect(root.querySelector('.oc-output summary')?.textContent).toBe('output · 1 line');
});

describe('calls inside a call', () => {
  test('a request and a question inside show in the parent, and are answered on their own', () => {
    renderCard(root, batch(), callbacks);
    jest.advanceTimersByTime(GUARD_MS);
    expect(all('.oc-state').map(n => n.textContent)).toEqual([
      'waiting for approval', 'completed', 'failed', 'running', 'waiting for approval', 'waiting for an answer'
    ]);
    expect(all('.oc-time')[0].textContent).toBe('waiting 0:04');
    const cards = all('.oc-nest .oc-card');
    press('1', cards[4]);
    expect(reply).not.toHaveBeenCalled();
    press('1', all('.oc-q')[1].querySelector('.oc-choice')!);
    press('Enter', cards[4]);
    press('Enter', cards[4]);
    expect(answer).toHaveBeenCalledWith(expect.objectContaining({ id: 'que_1' }), [['SQLite (Recommended)'], ['CSV']]);
    named('Allow once').click();
    expect(reply).toHaveBeenCalledWith(expect.objectContaining({ id: 'per_1' }), 'once', {});
  });

  test('each running call has its own Stop, and so has the parent', () => {
    renderCard(root, batch(), callbacks);
    const stops = all<HTMLButtonElement>('.oc-head button').filter(b => !b.hidden);
    stops.forEach(b => b.click());
    expect(stop.mock.calls).toEqual([['call_1'], ['call_c3']]);
  });

  test('what a finished call inside wrote is folded, its error is not', () => {
    renderCard(root, batch(), callbacks);
    const [done, failed] = all('.oc-nest .oc-card');
    expect(done.querySelector('.oc-out')?.parentElement).toHaveProperty('hidden', true);
    const fold = done.querySelector('.oc-output') as HTMLDetailsElement;
    fold.open = true;
    fold.dispatchEvent(new Event('toggle'));
    expect(fold.querySelector('pre')?.textContent).toBe('a\nb');
    expect(failed.querySelector('.oc-error')?.textContent).toContain('File not found');
  });
});

test('a card shows what the model was sent where a person reads another error', () => {
  const sent = 'Could not find oldString in the file.';
  renderCard(root, part({ status: 'error', error: 'The nearest is at line 2.' }, { outcome: 'failed', by: 'model', sent }));
  expect(root.querySelector('.oc-error')?.textContent).toBe('The nearest is at line 2.');
  const fold = root.querySelector('.oc-sent') as HTMLDetailsElement;
  expect(fold.querySelector('summary')?.textContent).toBe('sent to the model');
  fold.open = true;
  fold.dispatchEvent(new Event('toggle'));
  expect(fold.querySelector('pre')?.textContent).toBe(sent);
});
