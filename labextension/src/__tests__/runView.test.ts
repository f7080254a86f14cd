import { disposeRun, renderRun, updateRun } from '../run';
import type { CallItem, RunHead, RunItem, RunPart, WordsItem } from '../run';
import { dollars, headWords, retryWords, tokens } from '../run/wording';
import { RUN_MIME } from '../run';
import mime from '../mime';
import { replaceOrphans } from '../notebook/orphanedCards';
import { ASK, part } from './gallery';

const HEAD: RunHead = {
  v: 1,
  id: 'run_1',
  sessionID: 'ses_1',
  agent: 'build',
  model: 'openai:gpt-5',
  status: 'working',
  step: 2,
  tokens: 12_345,
  started: 1_000_000
};

const text = (id: string, words: string, rest: Partial<WordsItem> = {}): WordsItem => ({ kind: 'text', id, text: words, ...rest });
const call = (id: string, state = {}, ui = {}, parent?: string): CallItem => ({
  kind: 'call',
  id,
  ...(parent ? { parent } : {}),
  part: part(state, ui, { id: `prt_${id}`, callID: id, tool: 'read' })
});
const DONE = { status: 'completed' as const, output: 'one\ntwo', time: { start: 1_000_000, end: 1_000_002 } };
const run = (items: RunItem[], head: Partial<RunHead> = {}): RunPart => ({ ...HEAD, ...head, items });

let root: HTMLElement;

beforeEach(() => {
  jest.useFakeTimers({ now: 1_004_000 });
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  disposeRun(root);
  root.remove();
  jest.useRealTimers();
});

test('the head says who, which model, how far, what it took', () => {
  renderRun(root, run([], { cost: 0.0123, mode: 'bypass', title: 'Mend it' }), { stop: () => undefined });
  expect(root.querySelector('.oc-head')?.textContent).toBe(
    'buildopenai:gpt-5bypass◐working2 steps · 12.3k tokens · $0.0123 · 0:04Stop'
  );
  expect(root.querySelector('.oc-danger')?.textContent).toBe('bypass');
});

test('words of the head', () => {
  expect([1, 999, 1_000, 99_960, 1_500_000].map(tokens)).toEqual(['1 token', '999 tokens', '1.0k tokens', '100k tokens', '1.5M tokens']);
  expect([undefined, 0, 0.00123, 1.2].map(dollars)).toEqual(['', '', '$0.0012', '$1.20']);
  expect(headWords(run([], { ended: 1_002_500, status: 'done', waited: 1_000 }), 0)).toBe('2 steps · 12.3k tokens · 1.5 s · waited 1.0 s');
  const retry = { attempt: 1, message: 'rate limited', next: 1_012_000 };
  expect(retryWords({ ...HEAD, status: 'retrying', retry }, 1_004_000)).toBe('Retrying in 8 s (attempt 2): rate limited');
});

test('text grows by pieces, whatever came twice or in between', () => {
  renderRun(root, run([text('t', 'Hel')]));
  expect(updateRun(root, { kind: 'run', head: HEAD, deltas: [[0, 3, 'lo **wor']] })).toBe(true);
  expect(updateRun(root, { kind: 'run', head: HEAD, deltas: [[0, 3, 'lo **wor']] })).toBe(true);
  expect(updateRun(root, { kind: 'run', head: HEAD, deltas: [[0, 11, 'ld**']] })).toBe(true);
  expect(root.querySelector('.oc-words')?.textContent).toBe('Hello world');
  expect(root.querySelector('.oc-words b')?.textContent).toBe('world');
});

test('a missing piece asks for the whole, which puts everything right', () => {
  renderRun(root, run([text('t', 'a')]));
  expect(updateRun(root, { kind: 'run', head: HEAD, deltas: [[0, 5, 'f']] })).toBe(false);
  expect(updateRun(root, { kind: 'run', head: HEAD, items: [[3, call('c3')]] })).toBe(false);
  expect(updateRun(root, { kind: 'run', head: HEAD, deltas: [[2, 0, 'f']] })).toBe(false);
  renderRun(root, run([text('t', 'abcdef'), call('c1', DONE), text('u', 'x'), call('c3')]));
  expect(root.querySelectorAll('.oc-call')).toHaveLength(2);
  expect(root.querySelector('.oc-words')?.textContent).toBe('abcdef');
});

test('a call is a card while it goes on and a line when it is over; what went wrong stays open', () => {
  renderRun(root, run([call('a'), call('b'), call('c')]));
  const calls = [...root.querySelectorAll<HTMLDetailsElement>('.oc-call')];
  expect(calls.map(node => node.open)).toEqual([true, true, true]);
  expect(root.querySelectorAll('.oc-call .oc-card')).toHaveLength(3);
  updateRun(root, {
    kind: 'run',
    head: HEAD,
    items: [
      [0, call('a', DONE, { outcome: 'completed' })],
      [1, call('b', { status: 'error', error: 'No.' }, { outcome: 'denied by you' })]
    ]
  });
  expect(calls.map(node => node.open)).toEqual([false, true, true]);
  expect(calls[0].querySelector('.oc-line')?.textContent).toBe('✓readsrc/clean.py2 ms');
  expect(calls[1].querySelector('.oc-line')?.textContent).toBe('⊘denied by youreadsrc/clean.py');
  calls[0].open = true;
  calls[0].dispatchEvent(new Event('toggle'));
  expect(calls[0].querySelector('.oc-out')?.textContent).toContain('one');
});

test('a finished call that arrives as such draws its card only when it is opened', () => {
  renderRun(root, run([call('a', DONE, { outcome: 'completed' })]));
  expect(root.querySelector('.oc-call .oc-card')).toBeNull();
});

test('pictures of calls stay in sight where their lines are closed, and in no fold', () => {
  const picture = (filename: string) => ({ mime: 'image/png', url: 'data:image/png;base64,AAAA', filename });
  const done = { outcome: 'completed' as const };
  const plot = { ...DONE, attachments: [picture('figure-1.png'), { mime: 'text/csv', url: '', filename: 'a.csv' }] };
  renderRun(
    root,
    run([
      call('a', plot, { ...done, label: 'plot' }), call('b', DONE, done), call('c', plot, done, 'b'), call('d', DONE, done), call('e', DONE, done),
      text('t', 'Done.')
    ])
  );
  const groups = [...root.querySelectorAll<HTMLElement>('.oc-thumbnails')];
  expect(groups.map(group => group.hidden)).toEqual([false, false, true, true]);
  expect(groups[0].getAttribute('aria-label')).toBe('Pictures of read plot');
  expect(groups.slice(0, 2).map(group => [...group.querySelectorAll('img')].map(({ alt }) => alt))).toEqual([['figure-1.png'], ['figure-1.png']]);
  expect(root.querySelector('.oc-call .oc-card')).toBeNull();
  expect(root.querySelector('.oc-fold')).toBeNull();
  expect(root.querySelector('.oc-folded')).toBeNull();
});

test('calls inside a call are drawn in its card, and asks there are answered', () => {
  const replies: unknown[] = [];
  const asked = call('b', {}, { ask: { ...ASK, asked: 1_001_000 } }, 'a');
  renderRun(root, run([call('a', {}, { label: 'a task' }), asked]), { reply: (...given) => replies.push(given.slice(1)) });
  expect(root.querySelectorAll('.oc-items > .oc-call-item')).toHaveLength(1);
  expect(root.querySelector('.oc-run > .oc-head .oc-state')?.textContent).toBe('waiting for approval');
  jest.advanceTimersByTime(400);
  root.querySelector<HTMLButtonElement>('.oc-nest .oc-go')?.click();
  expect(replies).toEqual([['once', {}]]);
  updateRun(root, { kind: 'run', head: HEAD, items: [[1, call('b', DONE, { outcome: 'completed' }, 'a')]] });
  expect(root.querySelector('.oc-nest .oc-state')?.textContent).toBe('completed');
  updateRun(root, { kind: 'run', head: HEAD, tails: [[0, { text: 'live output' }]] });
  expect(root.querySelector('.oc-call .oc-out')?.textContent).toBe('live output');
});

test('Stop of the head stops the run, Stop of a call the call', () => {
  const stopped: string[] = [];
  renderRun(root, run([call('a')]), { stop: id => stopped.push(id) });
  root.querySelector<HTMLButtonElement>('.oc-call .oc-head button')?.click();
  root.querySelector<HTMLButtonElement>('.oc-stop-run')?.click();
  expect(stopped).toEqual(['a', '']);
});

test('what was taken back goes', () => {
  renderRun(root, run([text('t', 'a'), call('c')]));
  updateRun(root, { kind: 'run', head: HEAD, items: [[0, { kind: 'gone', id: 't' }], [1, { kind: 'gone', id: 'c' }], [2, text('u', 'again')]] });
  expect(root.querySelector('.oc-items')?.textContent).toBe('again');
});

test('thoughts are folded, notes are lines, the end says what to do', () => {
  renderRun(
    root,
    run([{ kind: 'reasoning', id: 'r', text: 'hmm', done: true }, { kind: 'note', id: 'n', text: '<b>Summarised</b>' }], {
      status: 'failed',
      ended: 1_002_000,
      end: { tone: 'err', text: 'No key.', advice: 'Set one.' }
    }),
    { stop: () => undefined }
  );
  expect(root.querySelector('details.oc-thought')?.hasAttribute('open')).toBe(false);
  expect(root.querySelector('.oc-dimmed')?.textContent).toBe('<b>Summarised</b>');
  expect(root.querySelector('.oc-end')?.textContent).toBe('No key.Set one.');
  expect(root.querySelector<HTMLElement>('.oc-stop-run')?.hidden).toBe(true);
});

test('a saved run is drawn inert by the renderer', async () => {
  const renderer = (mime as unknown as { rendererFactory: { createRenderer(o: never): { node: HTMLElement; renderModel(m: never): Promise<void>; dispose(): void }; mimeTypes: string[] } })
    .rendererFactory;
  expect(renderer.mimeTypes).toContain(RUN_MIME);
  const made = renderer.createRenderer({} as never);
  const saved = run([text('t', 'done', { done: true }), call('a', DONE, { outcome: 'completed' })], { status: 'done', ended: 1_002_000 });
  await made.renderModel({ data: { [RUN_MIME]: saved } } as never);
  expect(made.node.querySelectorAll('button:not([hidden])')).toHaveLength(0);
  expect(made.node.textContent).toContain('done');
  made.dispose();
});

test('a live run that is lost gives way to what is beside it', () => {
  const output = { data: { 'application/vnd.jupyter.widget-view+json': { model_id: 'm' }, [RUN_MIME]: { id: 'run_1' } } };
  const set: unknown[] = [];
  const outputs = { length: 1, get: () => ({ toJSON: () => output }), set: (_: number, value: unknown) => set.push(value) };
  const panel = { content: { model: { cells: { length: 1, get: () => ({ outputs }) } } } };
  expect(replaceOrphans(panel as never, () => true, { run_1: { data: { 'text/plain': 'settled' } } })).toBe(1);
  expect(set).toEqual([{ data: { 'text/plain': 'settled' }, metadata: {} }]);
});
