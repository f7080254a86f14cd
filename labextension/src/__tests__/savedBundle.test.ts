import { joinSaved } from '../card/savedBundle';

const data = {
  tool: 'task',
  state: { status: 'completed', output: 'see ses_…1, not ses_…2' },
  ui: { children: [{ tool: 'read', state: {} }, { tool: 'bash', state: {} }] }
};

test('ids and times come back from the metadata, to nested calls and texts too', () => {
  const opencode = {
    id: 'prt_1',
    state: { time: { start: 1, end: 2 } },
    ui: { children: [{ id: 'prt_2' }, { id: 'prt_3' }] },
    aliases: { 'ses_…1': 'ses_long' }
  };
  expect(joinSaved(data, { opencode })).toEqual({
    tool: 'task',
    id: 'prt_1',
    state: { status: 'completed', output: 'see ses_long, not ses_…2', time: { start: 1, end: 2 } },
    ui: { children: [{ tool: 'read', state: {}, id: 'prt_2' }, { tool: 'bash', state: {}, id: 'prt_3' }] }
  });
});

test.each([undefined, null, {}, { opencode: 'x' }, { other: {} }])('a card saved whole stays as it is (%j)', metadata => {
  expect(joinSaved(data, metadata)).toBe(data);
});
