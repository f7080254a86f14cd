import { Widget } from '@lumino/widgets';

import { ApprovalModel } from '../panel/approvals/approvalModel';
import { KernelHub } from '../kernel/hub';
import type { Change } from '../kernel/hub';
import { Section } from '../panel/section';
import { ToolPanel } from '../panel/toolPanel';

/** A signal of JupyterLab's. */
class Signal<T> {
  private slots: ((sender: unknown, value: T) => void)[] = [];
  connect = (slot: (sender: unknown, value: T) => void): void => void this.slots.push(slot);
  emit(value: T): void {
    this.slots.forEach(slot => slot(this, value));
  }
}

/** A notebook that is open, with a kernel that answers control messages with `reply`, or not at all. */
function open(id: string, source: string, reply?: unknown, type = 'code') {
  const sent: unknown[] = [];
  const kernel = {
    id,
    clientId: 'me',
    username: 'ada',
    isDisposed: false,
    status: 'busy',
    sendControlMessage: (message: { content: { data: unknown } }) => {
      sent.push(message.content.data);
      const future = {
        done: new Promise(() => undefined),
        dispose: () => undefined,
        onReply: (_: unknown) => undefined,
        onIOPub: () => undefined
      };
      const content = typeof reply === 'function' ? reply() : reply;
      void Promise.resolve().then(() => content && future.onReply({ content }));
      return future;
    }
  };
  const iopubMessage = new Signal<unknown>();
  const statusChanged = new Signal<string>();
  const document = {
    node: globalThis.document.createElement('div'),
    title: { label: `${id}.ipynb` },
    content: { model: { cells: [{ sharedModel: { cell_type: type, getSource: () => source } }] } },
    context: { ready: Promise.resolve() },
    sessionContext: { session: { kernel }, iopubMessage, statusChanged, kernelChanged: new Signal<void>() }
  };
  const nudge = (...topics: string[]): void =>
    iopubMessage.emit({ header: { msg_type: 'opencode_jupyter' }, content: { kind: 'panel', topics } });
  return { document, sent, nudge, statusChanged };
}

function hubOf(...opened: { document: unknown }[]): { hub: KernelHub; heard: Change[] } {
  const shell = {
    widgets: (area: string) => (area === 'main' ? opened.map(({ document }) => document) : [])[Symbol.iterator](),
    currentWidget: opened[0]?.document
  };
  const app = { shell, restored: Promise.resolve(), docRegistry: { addWidgetExtension: () => undefined } };
  const hub = new KernelHub(app as never);
  const heard: Change[] = [];
  hub.changed.connect((_, change) => void heard.push(change));
  return { hub, heard };
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) {
    await Promise.resolve();
  }
};

test('a kernel whose notebook names the extension is asked when the page opens, others are left alone', async () => {
  const ours = open('a', '%load_ext opencode_jupyter', { asks: [] });
  const other = open('b', 'print(1)', { asks: [] });
  const { hub, heard } = hubOf(ours, other);
  await settle();
  expect(hub.kernels().map(({ id, name }) => [id, name])).toEqual([['a', 'a.ipynb']]);
  expect(other.sent).toEqual([]);
  expect(heard.map(({ kernelId }) => kernelId)).toEqual(['a']);
});

test('a kernel that says hello is known, and is gone when it restarts', async () => {
  const late = open('c', '', { asks: [] });
  const { hub, heard } = hubOf(late);
  await settle();
  expect(hub.kernels()).toEqual([]);
  late.nudge('hello', 'asks');
  expect(hub.current()?.id).toBe('c');
  late.nudge('asks');
  expect(heard.at(-1)).toEqual({ kernelId: 'c', topics: ['asks'] });
  late.statusChanged.emit('restarting');
  expect(hub.kernels()).toEqual([]);
  const again = hubOf(open('c', 'x = %tool read a', { asks: [] }), open('d', 'x = 5 % tool', { asks: [] }));
  await settle();
  expect(again.hub.kernels()).toHaveLength(1);
});

test.each(['  %%tool bash\nls', 'import x\n\n\t%agent build', "a.b['c'], d = %tool read a", 'x\r\ny =\t%tool read a'])(
  'a kernel is asked because of the magic in %j',
  async source => {
    const { hub } = hubOf(open('a', source, { asks: [] }));
    await settle();
    expect(hub.kernels()).toHaveLength(1);
  }
);

test('text about the package does not count as its use', async () => {
  const { hub } = hubOf(open('a', '# opencode_jupyter\n%tool read a', { asks: [] }, 'markdown'));
  await settle();
  expect(hub.kernels()).toEqual([]);
});

test.each(['\n', '\r', ' ', '\t', ' \n', '1, 2, 3\n', '1, 2, 3', 'x = ', '=', '%', '\u2028', '\u00a0\n'])(
  'a cell of 20,000 times %j does not hold the page up',
  async line => {
    const before = performance.now();
    const { hub } = hubOf(open('a', line.repeat(20_000), { asks: [] }));
    await settle();
    expect(performance.now() - before).toBeLessThan(500);
    expect(hub.kernels()).toEqual([]);
  }
);

test('words of the kernel about what went wrong are the error', async () => {
  const ours = open('d', 'opencode_jupyter', { error: 'The kernel is too busy.' });
  const { hub } = hubOf(ours);
  ours.nudge('hello');
  await settle();
  await expect(hub.request('d', { what: 'asks' })).rejects.toThrow('too busy');
  await expect(hub.request('gone', { what: 'asks' })).rejects.toThrow('No kernel');
});

test('a shell without one of the areas, as JupyterLab 4.4 is, has the documents of the others', async () => {
  const a = open('a', '%load_ext opencode_jupyter', {});
  const widgets = (area: string) => {
    if (area === 'down') {
      throw new Error('Invalid area: down');
    }
    return (area === 'right' ? [a.document] : [])[Symbol.iterator]();
  };
  const app = { shell: { widgets, currentWidget: null }, restored: Promise.resolve(), docRegistry: { addWidgetExtension: () => undefined } };
  const hub = new KernelHub(app as never);
  await settle();
  expect(hub.kernels().map(({ id }) => id)).toEqual(['a']);
});

describe('a kernel that does not answer', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  test('is asked again by the tab that is seen', async () => {
    const { hub } = hubOf();
    const answers = [false, false, true];
    const refresh = jest.fn(async () => answers.shift() ?? true);
    class One extends Section {
      refresh = refresh;
      render = (): null => null;
    }
    const panel = new ToolPanel(hub, [new One('one', 'One', ['tools'])]);
    Widget.attach(panel, document.body);
    panel.show();
    jest.spyOn(panel, 'isVisible', 'get').mockReturnValue(true);
    panel.choose('one');
    await jest.advanceTimersByTimeAsync(10_000);
    expect(refresh).toHaveBeenCalledTimes(3);
    panel.dispose();
  });

  test('keeps the requests that were known, and is asked again', async () => {
    const replies: unknown[] = [{ asks: [] }, { asks: [{ id: '1' }] }, { error: 'busy' }, { asks: [{ id: '1' }, { id: '2' }] }];
    const a = open('a', '%load_ext opencode_jupyter', () => replies.shift());
    const { hub } = hubOf(a);
    const model = new ApprovalModel(hub);
    const ids = (): string[] => model.approvals().map(({ id }) => id);
    await jest.advanceTimersByTimeAsync(10);
    expect(ids()).toEqual(['1']);
    a.nudge('asks');
    await jest.advanceTimersByTimeAsync(10);
    expect(ids()).toEqual(['1']);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(ids()).toEqual(['1', '2']);
  });
});
