import { YNotebook } from '@jupyter/ydoc';
import { Signal } from '@lumino/signaling';

import type { Received } from '../kernel/hub';
import { applyChange } from '../notebook/applyChange';
import { cellsOf } from '../notebook/trimOutputs';
import { Documents } from '../notebook/documents';
import type { Context } from '../notebook/documents';
import { performJobs } from '../notebook/jobs';
import type { CellJson, Change, Job } from '../notebook/protocol';
import { FIND_MS, Relay } from '../notebook/relay';
import type { Channel } from '../notebook/relay';

const output = { output_type: 'stream', name: 'stdout', text: 'out' };

function notebook(...sources: string[]): YNotebook {
  const made = new YNotebook({ disableDocumentWideUndoRedo: true });
  sources.forEach((source, n) =>
    made.addCell({ cell_type: 'code', id: `c${n}`, source, outputs: [output], execution_count: n, metadata: { n } } as never)
  );
  made.undoManager.clear();
  return made;
}

const apply = (shared: YNotebook, change: Change): string | null => applyChange(shared as never, change);
const sources = (shared: YNotebook): string[] => shared.cells.map(cell => cell.getSource());
const expecting = (source: string) => ({ type: 'code', source });

describe('a change of the shared model', () => {
  test('replaces a source, keeps outputs, and is undone in one step apart from what was typed before', () => {
    const shared = notebook('a = 1\nb = 2\nc = 3', 'x');
    const cell = shared.cells[0];
    cell.updateSource(0, 1, 'A');
    const change: Change = { operation: 'replace', id: 'c0', type: 'code', source: 'A = 1\nb = 😀\nc = 3', expect: expecting('A = 1\nb = 2\nc = 3') };
    expect(apply(shared, change)).toBeNull();
    cell.updateSource(0, 1, 'AA');
    expect(sources(shared)).toEqual(['AA = 1\nb = 😀\nc = 3', 'x']);
    expect((cell.toJSON() as CellJson).outputs).toEqual([output]);
    cell.undo();
    expect(cell.getSource()).toBe('A = 1\nb = 😀\nc = 3');
    cell.undo();
    expect(cell.getSource()).toBe('A = 1\nb = 2\nc = 3');
    cell.undo();
    expect(cell.getSource()).toBe('a = 1\nb = 2\nc = 3');
  });

  test.each([
    ['😀', '😁'],
    ['a😀b', 'a😁b'],
    ['😀😀', '😀'],
    ['', 'x'],
    ['x', ''],
    ['aa', 'aaa'],
    ['\u{1F600}', '\u{1F900}'],
    ['x\u{1F600}', 'y\u{10600}']
  ])('%s becomes %s whole', (before, after) => {
    const shared = notebook(before);
    expect(apply(shared, { operation: 'replace', id: 'c0', type: 'code', source: after, expect: expecting(before) })).toBeNull();
    expect(sources(shared)).toEqual([after]);
  });

  test('inserts, moves and deletes by neighbours, not by places', () => {
    const shared = notebook('0', '1', '2');
    const done = (change: Change): string[] => {
      expect(apply(shared, change)).toBeNull();
      return sources(shared);
    };
    expect(done({ operation: 'insert', id: 'n', after: 'c0', type: 'markdown', source: 'new' })).toEqual(['0', 'new', '1', '2']);
    expect(shared.cells[1].cell_type).toBe('markdown');
    expect(done({ operation: 'insert', id: 'm', after: null, type: 'code', source: 'first' })[0]).toBe('first');
    expect(done({ operation: 'move', id: 'c2', after: null })).toEqual(['2', 'first', '0', 'new', '1']);
    expect(done({ operation: 'move', id: 'c2', after: 'n' })).toEqual(['first', '0', 'new', '2', '1']);
    expect(done({ operation: 'move', id: 'm', after: 'c1' })).toEqual(['0', 'new', '2', '1', 'first']);
    expect((shared.cells[2].toJSON() as CellJson).outputs).toEqual([output]);
    expect(done({ operation: 'delete', id: 'n', expect: { type: 'markdown', source: 'new' } })).toEqual(['0', '2', '1', 'first']);
    shared.undo();
    expect(sources(shared)).toEqual(['0', 'new', '2', '1', 'first']);
  });

  test('another type keeps id and metadata; outputs go', () => {
    const shared = notebook('0', '1');
    expect(apply(shared, { operation: 'replace', id: 'c1', type: 'markdown', source: '# 1', expect: expecting('1') })).toBeNull();
    expect(shared.cells[1].toJSON()).toEqual({ cell_type: 'markdown', id: 'c1', metadata: { n: 1 }, source: '# 1' });
  });

  test.each<[string, Change]>([
    ['changed', { operation: 'replace', id: 'c0', type: 'code', source: 'x', expect: expecting('other') }],
    ['changed', { operation: 'replace', id: 'c0', type: 'code', source: 'x', expect: { type: 'raw', source: '0' } }],
    ['gone', { operation: 'delete', id: 'none', expect: expecting('0') }],
    ['neighbour', { operation: 'move', id: 'c0', after: 'none' }],
    ['neighbour', { operation: 'insert', id: 'n', after: 'none', type: 'code', source: '' }],
    ['changed', { operation: 'insert', id: 'c0', after: null, type: 'code', source: '' }]
  ])('%s: nothing is changed', (words, change) => {
    const shared = notebook('0', '1');
    expect(apply(shared, change)).toBe(words);
    expect(sources(shared)).toEqual(['0', '1']);
    expect(shared.canUndo()).toBe(false);
  });
});

test('outputs are cut to what can be sent, pictures are whole or named', () => {
  const big = 'x'.repeat(1_000_000);
  const picture = 'A'.repeat(6_000_000);
  const cell = (data: object): CellJson => ({ cell_type: 'code', source: '', outputs: [{ output_type: 'display_data', data }] });
  const stream: CellJson = { cell_type: 'code', source: '', outputs: [{ output_type: 'stream', text: big }] };
  const made = cellsOf([stream, cell({ 'image/png': picture }), cell({ 'image/png': picture }), cell({ 'x/y': big }), stream], 0, 4);
  const data = (n: number) => (made[n].outputs as { data: Record<string, string> }[])[0].data;
  const text = (n: number) => (made[n].outputs as { text: string }[])[0].text;
  expect(text(0)).toContain('600,000 characters not sent');
  expect(text(4)).toBe('');
  expect(data(1)['image/png']).toBe(picture);
  expect(data(2)['image/png']).toBe('?6000000');
  expect(data(3)['x/y']).toBe('');
  expect(JSON.stringify(made).length).toBeLessThan(9_000_000);
});

// ---------------------------------------------------------------------- documents, pages, the kernel

function context(path: string, shared: unknown, more: object = {}, kernel = 'k'): Context {
  const made = {
    path,
    localPath: path.replace(/^\w+:/, ''),
    isReady: true,
    isDisposed: false,
    ready: Promise.resolve(),
    contentsModel: { writable: true },
    sessionContext: { session: { kernel: { id: kernel } } },
    model: { dirty: false, sharedModel: shared, ...more }
  };
  return made as unknown as Context;
}

const find: Job = { op: 'find', name: 'a.ipynb' };

test('a page tells which documents it has open, and reads and changes them', async () => {
  const shared = notebook('0', '1');
  const first = context('d/a.ipynb', shared);
  const open = [first, first]; // two views
  const documents = new Documents('me', '/root', () => open);
  open.push(
    context('RTC:d/a.ipynb', shared, {}, 'other'),
    context('S3:d/a.ipynb', shared),
    context('e/a.ipynb', { getSource: () => '{}' }, { dirty: true }, 'other'),
    context('d/b.ipynb', shared, {}, 'other'),
    context('d/own.ipynb', shared),
    context('d/a.txt', {})
  );
  const told = (await documents.perform(find, 'k')).documents ?? [];
  const known = { page: 'me', root: '/root', dirty: false, shared: false, text: false };
  expect(told).toEqual([
    { ...known, document: '1', path: 'd/a.ipynb', own: true },
    { ...known, document: '2', path: 'd/a.ipynb', own: false, shared: true },
    { ...known, document: '4', path: 'e/a.ipynb', own: false, dirty: true, text: true },
    { ...known, document: '6', path: 'd/own.ipynb', own: true }
  ]);
  const change: Change = { operation: 'replace', id: 'c0', type: 'code', source: 'new', expect: expecting('0') };
  const changed = await documents.perform({ op: 'change', page: 'me', document: '1', change }, 'k');
  expect(changed.cells?.map(cell => cell.source)).toEqual(['new', '1']);
  expect(changed.head).toHaveProperty('metadata');
  expect(await documents.perform({ op: 'change', page: 'me', document: '1', change }, 'k')).toEqual({ error: 'changed' });
  expect(await documents.perform({ op: 'read', page: 'me', document: '4', first: 0, count: 1 }, 'k')).toEqual({ error: 'closed' });
  open.splice(0, 2);
  expect(await documents.perform({ op: 'read', page: 'me', document: '1', first: 0, count: 1 }, 'k')).toEqual({ error: 'closed' });
  open.push(context('r/a.ipynb', notebook('0'), { readOnly: true }));
  expect(await documents.perform({ op: 'change', page: 'me', document: '7', change }, 'k')).toEqual({ error: 'read-only' });
});

/** Channels of one browser: each hears all others, one letter after the other. */
function browser(): () => Channel {
  const channels: Channel[] = [];
  return () => {
    const channel: Channel = {
      onmessage: null,
      postMessage: letter => {
        for (const other of channels.filter(one => one !== channel)) {
          void Promise.resolve().then(() => other.onmessage?.({ data: letter } as MessageEvent));
        }
      }
    };
    channels.push(channel);
    return channel;
  };
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) {
    await Promise.resolve();
  }
};

test('pages hand jobs on; one that left or is silent is told apart', async () => {
  const open = browser();
  const shared = context('a.ipynb', notebook('0'));
  const [a, b] = [new Documents('a', '/', () => []), new Documents('b', '/', () => [shared])];
  const relay = new Relay('a', open(), (job, id) => a.perform(job, id));
  const other = new Relay('b', open(), (job, id) => b.perform(job, id));
  let stuck = false;
  const third = new Relay('c', open(), () => (stuck ? new Promise(() => undefined) : Promise.resolve({ documents: [] })));
  await settle();
  expect((await relay.askAll(find, 'k')).flatMap(answer => answer.documents)).toMatchObject([{ page: 'b', path: 'a.ipynb' }]);
  const read: Job = { op: 'read', page: 'b', document: '1', first: 0, count: 0 };
  expect((await relay.askOne('b', read, 'k')).cells?.[0].source).toBe('0');
  expect(await relay.askOne('nobody', read, 'k')).toEqual({ error: 'closed' });
  jest.useFakeTimers();
  try {
    stuck = true;
    for (let time = 0; time < 2; time++) {
      const asked = relay.askAll(find, 'k');
      await settle();
      jest.advanceTimersByTime(FIND_MS);
      expect((await asked).length).toBe(1);
    }
    const lost = new Relay('d', open(), () => new Promise(() => undefined));
    await settle();
    const asked = relay.askOne('d', read, 'k');
    await settle();
    jest.advanceTimersByTime(60_000);
    expect(await asked).toEqual({ error: 'lost' });
    lost.leave();
  } finally {
    jest.useRealTimers();
  }
  other.leave();
  third.leave();
  await settle();
  expect(await relay.askAll(find, 'k')).toEqual([]);
});

test('a nudge is taken once, for this page only, and answered on the control channel', async () => {
  const opened = context('a.ipynb', notebook('0'));
  const documents = new Documents('me', '/root', () => [opened]);
  const words: unknown[] = [];
  const received = new Signal<never, Received>({} as never);
  performJobs({ received } as never, documents, new Relay('me', browser()(), () => Promise.resolve({})), async (_, word) => {
    words.push(word);
    return word.step === 'take' && word.id !== 'gone' ? { job: find } : {};
  });
  const nudge = (content: object): void => received.emit({ kernel: { id: 'k' } as never, content });
  nudge({ kind: 'notebook', id: '1', page: '' });
  nudge({ kind: 'notebook', id: '1', page: '' });
  nudge({ kind: 'notebook', id: '2', page: 'another' });
  nudge({ kind: 'notebook', id: 'gone', page: 'me' });
  nudge({ kind: 'something' });
  await settle();
  expect(words).toMatchObject([
    { step: 'take', id: '1', page: 'me' },
    { step: 'take', id: 'gone', page: 'me' },
    { step: 'done', id: '1', page: 'me', answer: { documents: [{ path: 'a.ipynb', own: true }] } }
  ]);
});
