import { CARD_MIME } from '../card';
import { documentOf, requestKernel } from '../kernel/requests';
import { watchNotebook } from '../notebook/orphanedCards';

const REQUEST = { kind: 'page' as const, path: '/data/tool_1', line: 1, count: 400 };

/** A kernel's side of one control message. */
class Future {
  onReply: (message: unknown) => void = () => undefined;
  onIOPub: (message: unknown) => void = () => undefined;
  done = new Promise(() => undefined);
  dispose = jest.fn();
}

function kernel(future: Future): never {
  return { id: 'k', clientId: 'me', username: 'ada', sendControlMessage: () => future } as never;
}

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

test('the kernel’s reply is the page, also when it comes after the kernel is idle again', async () => {
  const future = new Future();
  const page = requestKernel(kernel(future), REQUEST);
  future.onIOPub({ header: { msg_type: 'status' }, content: { execution_state: 'idle' } });
  jest.advanceTimersByTime(500);
  future.onReply({ content: { first: 1, lines: ['x'] } });
  await expect(page).resolves.toEqual({ first: 1, lines: ['x'] });
  expect(future.dispose).toHaveBeenCalled();
  expect(jest.getTimerCount()).toBe(0);
});

test('no kernel, no extension and no answer each have their words', async () => {
  await expect(requestKernel(null, REQUEST)).rejects.toThrow('No kernel is running');
  const unloaded = new Future();
  const page = requestKernel(kernel(unloaded), REQUEST);
  unloaded.onIOPub({ header: { msg_type: 'status' }, content: { execution_state: 'idle' } });
  jest.advanceTimersByTime(2_000);
  await expect(page).rejects.toThrow('not loaded');
  const silent = requestKernel(kernel(new Future()), REQUEST);
  jest.advanceTimersByTime(15_000);
  await expect(silent).rejects.toThrow('does not answer');
});

test('a kernel that is restarted has nothing to wait for', async () => {
  const future = new Future();
  future.done = Promise.reject(new Error('Canceled future'));
  const page = requestKernel(kernel(future), REQUEST);
  await expect(page).rejects.toThrow('was restarted');
  expect(jest.getTimerCount()).toBe(0);
});

test('an answer that lies ready while the page is busy is taken', async () => {
  const future = new Future();
  const page = requestKernel(kernel(future), REQUEST);
  future.onIOPub({ header: { msg_type: 'status' }, content: { execution_state: 'idle' } });
  jest.setSystemTime(Date.now() + 10_000); // the page was busy: the clock went on, its timers did not
  jest.advanceTimersByTime(500);
  future.onReply({ content: { lines: ['x'] } });
  await expect(page).resolves.toEqual({ lines: ['x'] });
});

test('the document is the one that the card stands in, else the one with its kernel', () => {
  const made = (id: string) => ({
    node: document.createElement('div'),
    sessionContext: { session: { kernel: { id, isDisposed: false } } }
  });
  const [a, b] = [made('a'), made('b')];
  const shell = { widgets: (area?: string) => (area === 'main' ? [a, b, {}] : [])[Symbol.iterator](), currentWidget: a };
  const card = document.createElement('div');
  expect(documentOf(shell as never, card, '')).toBe(a);
  expect(documentOf(shell as never, card, 'b')).toBe(b);
  b.node.append(card);
  expect(documentOf(shell as never, card, 'a')).toBe(b);
});

describe('live cards whose kernel has ended', () => {
  const WIDGET = 'application/vnd.jupyter.widget-view+json';
  const live = (id: string) => ({ data: { [WIDGET]: { model_id: id }, [CARD_MIME]: { v: 1 }, 'text/plain': 'x' } });

  function open(comms: string[] | null, outputs: unknown[], settled: Record<string, unknown> = {}) {
    const list = {
      get length() {
        return outputs.length;
      },
      get: (index: number) => ({ toJSON: () => outputs[index] }),
      set: (index: number, value: unknown) => {
        outputs[index] = value;
      }
    };
    const cells = { length: 2, get: (index: number) => (index ? { outputs: list } : {}) };
    let status: (sender: unknown, value: string) => void = () => undefined;
    const answer = { content: { status: 'ok', comms: Object.fromEntries((comms ?? []).map(id => [id, {}])) } };
    const sessionContext = {
      ready: Promise.resolve(),
      session: {
        kernel: comms && {
          requestCommInfo: async () => answer,
          sendControlMessage: () => {
            const future = new Future();
            void Promise.resolve().then(() => future.onReply({ content: { cards: settled, metadata: { call_a: { opencode: { id: 'prt_a' } } } } }));
            return future;
          }
        }
      },
      statusChanged: { connect: (slot: typeof status) => (status = slot) },
      kernelChanged: { connect: () => undefined }
    };
    const watched = watchNotebook({ content: { model: { cells } } } as never, { ready: Promise.resolve(), sessionContext } as never);
    const ended = (id: string): void => {
      delete answer.content.comms[id];
    };
    return { watched: watched.then(settle), status: (value: string) => status(null, value), ended };
  }
  /** Lets what was begun without waiting come to rest. */
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) {
      await Promise.resolve();
    }
  };
  const views = (outputs: unknown[]): boolean[] =>
    outputs.map(output => WIDGET in ((output as { data?: object }).data ?? {}));

  test('a notebook without a kernel shows what is known; other widgets and streams stay', async () => {
    const other = { data: { [WIDGET]: { model_id: 'slider' } } };
    const outputs: unknown[] = [live('a'), other, { output_type: 'stream' }];
    await open(null, outputs).watched;
    expect(views(outputs)).toEqual([false, true, false]);
    expect(outputs[0]).toEqual({ data: { [CARD_MIME]: { v: 1 }, 'text/plain': 'x' }, metadata: {} });
    expect(outputs[1]).toBe(other);
  });

  test('a widget that the kernel still has stays live, until the kernel ends', async () => {
    const outputs: unknown[] = [live('a'), live('b')];
    const notebook = open(['a'], outputs);
    await notebook.watched;
    expect(views(outputs)).toEqual([true, false]);
    notebook.status('busy');
    expect(views(outputs)).toEqual([true, false]);
    notebook.status('autorestarting');
    expect(views(outputs)).toEqual([false, false]);
  });

  test('a page opened during a call asks the kernel for what became of it', async () => {
    const output = { data: { [WIDGET]: { model_id: 'a' }, [CARD_MIME]: { v: 1, callID: 'call_a' } } };
    const outputs: unknown[] = [output];
    const settled = { call_a: { 'text/html': 'done', [CARD_MIME]: { v: 1, callID: 'call_a', done: true } } };
    const notebook = open(['a'], outputs, settled);
    await notebook.watched;
    expect(views(outputs)).toEqual([true]);
    notebook.ended('a');
    jest.advanceTimersByTime(2_000);
    await settle();
    expect(outputs).toEqual([{ data: settled.call_a, metadata: { opencode: { id: 'prt_a' } } }]);
    expect(jest.getTimerCount()).toBe(0);
  });
});
