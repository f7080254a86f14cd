import widget from '../widget';
import { createBridge } from '../kernel/bridge';
import { KernelHub } from '../kernel/hub';
import { controlMessage, MESSAGE_TYPE } from '../kernel/requests';
import { CARD_MIME } from '../card';
import mime from '../mime';
import { VERSION } from '../card/version';
import { ASK, part } from './gallery';

/** A model as anywidget hands it to a module. */
class Model {
  sent: unknown[] = [];
  private listeners = new Map<string, (...args: unknown[]) => void>();
  constructor(readonly traits: Record<string, unknown>) {}
  get(name: string): unknown {
    return this.traits[name];
  }
  on(event: string, listener: (...args: unknown[]) => void): void {
    this.listeners.set(event, listener);
  }
  off(event: string): void {
    this.listeners.delete(event);
  }
  send(content: unknown): void {
    this.sent.push(content);
  }
  emit(event: string, ...args: unknown[]): void {
    this.listeners.get(event)?.(...args);
  }
}

const page = globalThis as { __opencode_jupyter?: unknown };
let el: HTMLElement;
let end: (() => void) | undefined;

function show(traits: Record<string, unknown>): Model {
  const model = new Model({ kernel_id: 'k1', comm_id: 'c1', ...traits });
  end = widget.render({ model: model as never, el });
  return model;
}

beforeEach(() => {
  jest.useFakeTimers();
  el = document.createElement('div');
  document.body.append(el);
});

afterEach(() => {
  end?.();
  el.remove();
  delete page.__opencode_jupyter;
  jest.useRealTimers();
});

test('hears messages though anywidget gave its model up', async () => {
  const heard: string[] = [];
  class Base {
    comm = { on_msg: (callback: (message: unknown) => unknown) => (this.deliver = callback) };
    deliver: (message: unknown) => unknown = () => undefined;
    _handle_comm_msg(message: unknown): void {
      heard.push(`${this.constructor.name} ${String(message)}`);
    }
  }
  class AnyModel extends Base {
    override _handle_comm_msg(): void {
      heard.push('waits for ever');
    }
  }
  const inner = new AnyModel();
  const model = new Model({ comm_id: 'c1' });
  const widget_manager = { get_model: (id: string) => (id === 'c1' ? Promise.resolve(inner) : undefined) };
  widget.initialize({ model: Object.assign(model, { widget_manager }) as never });
  await Promise.resolve();
  await Promise.resolve();
  inner.deliver('now');
  expect(heard).toEqual(['AnyModel now']);
  widget.initialize({ model: new Model({}) as never });
});

test('says hello when it is drawn, and puts its style in once', () => {
  const model = show({ part: part() });
  expect(model.sent).toEqual([{ kind: 'hello', frontend: 'other', version: VERSION }]);
  show({ part: part() });
  expect(document.head.querySelectorAll('style')).toHaveLength(1);
});

test('draws nothing before it has a part, then every change', () => {
  const model = show({ part: {} });
  expect(el.textContent).toBe('');
  model.traits.part = part({ status: 'completed', output: 'done' });
  model.emit('change:part');
  expect(el.querySelector('.oc-out')?.textContent).toBe('done');
  model.traits.part = {};
  model.emit('change:part');
  expect(el.querySelector('.oc-out')?.textContent).toBe('done');
});

test('takes live output as custom messages', () => {
  const model = show({ part: part() });
  model.emit('msg:custom', { kind: 'tail', text: 'more', lines: 1, bytes: 4 });
  expect(el.querySelector('.oc-out')?.textContent).toBe('more');
});

test('an answer goes over the widget and over the control channel', () => {
  const send = jest.fn();
  page.__opencode_jupyter = { send };
  const model = show({ part: part({}, { ask: ASK }) });
  jest.advanceTimersByTime(300);
  (el.querySelector('[aria-label="Allow once"]') as HTMLElement).click();
  const answer = { kind: 'reply', id: 'per_1', digest: 'sha', reply: 'once' };
  expect(model.sent[1]).toEqual(answer);
  expect(send).toHaveBeenLastCalledWith('k1', 'c1', answer);
});

test('a broken control channel does not keep the answer from the widget', () => {
  page.__opencode_jupyter = {
    send: () => {
      throw new Error('closed');
    }
  };
  const told = jest.spyOn(console, 'debug').mockImplementation(() => undefined);
  const model = show({ part: part() });
  expect(told).toHaveBeenCalledTimes(1);
  told.mockRestore();
  expect(model.sent).toHaveLength(1);
  expect(el.querySelector('.oc-card')).not.toBeNull();
});

test('the plugin sends by the control channel of the kernel that a document has open', () => {
  const kernel = { id: 'k1', clientId: 'me', username: 'ada', isDisposed: false, sendControlMessage: jest.fn() };
  const document_ = { sessionContext: { session: { kernel } } };
  const shell = { widgets: (area?: string) => (area === 'main' ? [{}, document_] : [])[Symbol.iterator]() };
  const app = { shell, restored: new Promise(() => undefined), docRegistry: { addWidgetExtension: () => undefined } } as never;
  const bridge = createBridge(app, new KernelHub(app), null, null);
  expect(bridge.send('k1', 'c1', { kind: 'stop', callID: 'x' })).toBe(true);
  const [message, expectReply] = kernel.sendControlMessage.mock.calls[0];
  expect(expectReply).toBe(false);
  expect(message.channel).toBe('control');
  expect(message.header).toMatchObject({ msg_type: MESSAGE_TYPE, session: 'me', username: 'ada' });
  expect(message.content).toEqual({ comm_id: 'c1', data: { kind: 'stop', callID: 'x' } });
  expect(bridge.send('another', 'c1', { kind: 'stop', callID: 'x' })).toBe(false);
  const again = controlMessage(kernel as never, message.content);
  expect(again.header.msg_id).not.toBe(message.header.msg_id);
});

test('both cards open a whole output through the bridge, and offer it only where there is one', async () => {
  const spill = { path: '/data/tool_1', bytes: 9, lines: 3, line: 2 };
  const titled = { ...spill, title: 'edit: src/clean.py' };
  const cut = part({ status: 'completed', output: 'x' }, { spill });
  const data = { data: { [CARD_MIME]: cut } } as never;
  const links = (node: Element): HTMLElement[] => [...node.querySelectorAll<HTMLElement>('.oc-link')];
  const bare = mime.rendererFactory.createRenderer({} as never);
  await bare.renderModel(data);
  expect(links(bare.node)).toHaveLength(0);
  const open = jest.fn();
  page.__opencode_jupyter = { send: jest.fn(), open };
  const saved = mime.rendererFactory.createRenderer({} as never);
  await saved.renderModel(data);
  links(saved.node)[0].click();
  expect(open).toHaveBeenLastCalledWith(saved.node, '', titled);
  show({ part: cut });
  links(el)[0].click();
  expect(open).toHaveBeenLastCalledWith(el, 'k1', titled);
});

test('the renderer draws a saved card inert, and a card of another version as text', async () => {
  const renderer = mime.rendererFactory.createRenderer({} as never);
  const model = (data: unknown) => ({ data: { [CARD_MIME]: data, 'text/plain': 'plain' } }) as never;
  await renderer.renderModel(model(part({ status: 'completed', output: 'done' }, { ask: ASK })));
  expect(renderer.node.querySelector('.oc-state')?.textContent).toBe('completed');
  expect([...renderer.node.querySelectorAll<HTMLElement>('button:not(.oc-copy)')].filter(button => !button.hidden)).toHaveLength(0);
  await renderer.renderModel(model({ v: 2 }));
  expect(renderer.node.textContent).toBe('plain');
  renderer.dispose();
  expect(mime.rank).toBeLessThan(60);
  expect(mime.rendererFactory.safe).toBe(true);
});
