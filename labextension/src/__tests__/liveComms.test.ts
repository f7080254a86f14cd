import { LiveComms } from '../kernel/liveComms';
import { replaceOrphans, dropSuperseded, WIDGET_MIME } from '../notebook/orphanedCards';
import mime from '../mime';
import { CARD_MIME } from '../card';
import { RUN_MIME } from '../run/types';
import type { RunPart } from '../run/types';
import { ASK, part } from './gallery';

const page = globalThis as { __opencode_jupyter?: unknown };
afterEach(() => delete page.__opencode_jupyter);

const message = (type: string, content: object) => ({ header: { msg_type: type }, content: { comm_id: 'm', ...content } });

test('a live card is drawn, and answered, where JupyterLab draws no widgets', async () => {
  const comms = new LiveComms();
  const sent: unknown[][] = [];
  page.__opencode_jupyter = {
    liveModel: (_: Element, id: string) => comms.model(id, 'k1'),
    send: (...message: unknown[]) => sent.push(message)
  };
  const { createRenderer } = (mime as unknown as { rendererFactory: { createRenderer(o: never): { node: HTMLElement; renderModel(m: never): Promise<void>; dispose(): void } } })
    .rendererFactory;
  const renderer = createRenderer({} as never);
  const unknown = part({ status: 'running', input: {} }, { outcome: 'ended' });
  await renderer.renderModel({ data: { [WIDGET_MIME]: { model_id: 'm' }, [CARD_MIME]: unknown } } as never);
  expect(sent).toEqual([['k1', 'm', expect.objectContaining({ kind: 'hello' })]]);
  expect(renderer.node.querySelectorAll('button:not([hidden])')).toHaveLength(0);

  const asking = part({ status: 'running', input: { command: 'ls' } }, { ask: ASK });
  comms.receive('k1', message('comm_msg', { data: { method: 'update', state: { part: asking } } }));
  const allow = [...renderer.node.querySelectorAll('button')].find(button => button.textContent?.includes('Allow once'));
  await new Promise(resolve => setTimeout(resolve, 400)); // a button that has just appeared takes no click
  allow?.click();
  expect(sent.at(-1)).toEqual(['k1', 'm', expect.objectContaining({ kind: 'reply', reply: 'once' })]);

  const closed: string[] = [];
  comms.closed.connect((_, id) => void closed.push(id));
  comms.receive('k1', message('comm_close', {}));
  expect(closed).toEqual(['m']);
  expect(renderer.node.childElementCount).toBe(0);
  renderer.dispose();
});

test('widgets of others are not followed', () => {
  const comms = new LiveComms();
  const closed: string[] = [];
  comms.closed.connect((_, id) => void closed.push(id));
  comms.receive('k1', message('comm_open', { target_name: 'jupyter.widget', data: { state: { value: 3 } } }));
  comms.receive('k1', message('comm_close', {}));
  expect(closed).toEqual([]);
});

test('a live card goes when the server has appended the settled one, and no other output', () => {
  const live = (call: string) => ({ data: { [WIDGET_MIME]: { model_id: call }, [CARD_MIME]: { callID: call } } });
  const settled = (call: string) => ({ data: { [CARD_MIME]: { callID: call } } });
  let outputs: object[] = [live('a'), { output_type: 'stream' }, live('b'), live('c'), settled('a'), settled('c')];
  const updateOutputs = (start: number, end: number, added: object[]): void => {
    outputs = [...outputs.slice(0, start), ...added, ...outputs.slice(end)];
  };
  const list = {
    get length() {
      return outputs.length;
    },
    get: (index: number) => ({ toJSON: () => outputs[index] })
  };
  dropSuperseded({ content: { model: { cells: { length: 1, get: () => ({ outputs: list, sharedModel: { updateOutputs } }) } } } } as never);
  expect(outputs).toEqual([{ output_type: 'stream' }, live('b'), settled('a'), settled('c')]);
});

test('of a run whose kernel ended while it waited for approval, what waited is known not to have run', () => {
  const head = { v: 1, id: 'run_1', sessionID: 's', agent: 'build', model: 'p:m', status: 'working', step: 1, tokens: 0, started: 1 };
  const call = (id: string, state: object, ui: object = {}, parent = '') => ({ kind: 'call', id, parent, part: part(state, ui) });
  const comms = new LiveComms();
  const send = (content: object): void => comms.receive('k1', message('comm_msg', { data: { method: 'custom', content } }));
  comms.receive('k1', message('comm_open', { target_name: 'jupyter.widget', data: { state: { run: { ...head, items: [] } } } }));
  const text = { kind: 'text', id: 't', text: 'I look' };
  const done = call('a', { status: 'completed', output: 'x' }, { outcome: 'completed' });
  const asking = [call('b', { status: 'running' }), call('c', { status: 'running' }, { ask: ASK, untouched: true }, 'b')];
  send({ kind: 'run', head, items: [[0, text], [1, done], ...asking.map((item, at) => [at + 2, item])] });
  send({ kind: 'run', head: { ...head, step: 2 }, deltas: [[0, 6, ' at it'], [0, 0, 'twice']] });

  const drop = (): { end: { text: string }; run: RunPart } => {
    const output = { data: { [WIDGET_MIME]: { model_id: 'm' }, [RUN_MIME]: { id: 'run_1' } } };
    const set: { data: Record<string, RunPart> }[] = [];
    const outputs = { length: 1, get: () => ({ toJSON: () => output }), set: (_: number, value: never) => set.push(value) };
    replaceOrphans({ content: { model: { cells: { length: 1, get: () => ({ outputs }) } } } } as never, () => true, {}, id => comms.shown(id));
    const run = set[0].data[RUN_MIME];
    return { run, end: run.end as { text: string } };
  };
  const { run, end } = drop();
  expect(end.text).toBe('The kernel ended while this run waited for approval. What waited was not run.');
  expect([run.step, run.status, (run.items[0] as { text: string }).text]).toEqual([2, 'stopped', 'I look at it']);
  const ends = run.items.flatMap(item => (item.kind === 'call' ? [[item.part.ui.outcome, item.part.state.error]] : []));
  expect(ends).toEqual([
    ['completed', undefined],
    ['cancelled', 'The kernel ended while a call inside this one waited for approval.'],
    ['cancelled', 'The kernel ended while this call waited for approval. Nothing was run.']
  ]);
  expect(JSON.stringify(run)).not.toContain(ASK.id);

  send({ kind: 'run', head, items: [[3, call('c', { status: 'running' }, {}, 'b')]] }); // approved
  expect(drop().end.text).toContain('State unknown');
});
