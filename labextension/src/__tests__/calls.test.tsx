import * as React from 'react';
import { act } from 'react';

import { Axis, busySpans } from '../panel/calls/axis';
import { COLUMNS, csvField, toCsv, toJsonLines } from '../panel/calls/export';
import { CallLog, NO_FILTER, matches, outermost, nestCalls, outcomeOf, distinctValues, workedMs } from '../panel/calls/callLog';
import type { CallRow } from '../panel/calls/callLog';
import { Timeline, describeCall, toneOf } from '../panel/calls/timeline';
import { BUCKETS, median, totals } from '../panel/calls/totals';
import { stateWords } from '../card/wording';
import type { Outcome } from '../card/types';
import { part } from './gallery';

const { createRoot } = jest.requireActual<{ createRoot(host: Element): { render(element: React.ReactElement): void } }>('react-dom/client');
(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

const NOW = 1_000_000;

function call(id: string, more: Partial<CallRow> = {}): CallRow {
  const state = more.end === null ? 'running' : 'completed';
  return {
    id,
    parent: null,
    session: 'ses_1',
    tool: 'bash',
    state,
    outcome: state === 'completed' ? 'completed' : '',
    title: `echo ${id}`,
    start: 0,
    end: 100,
    waited: 0,
    waits: [],
    agent: 'build',
    by: 'user',
    ...more
  };
}

const shape = (calls: CallRow[], filter = NO_FILTER): [string, number][] => nestCalls(calls, filter).map(({ call: { id }, depth }) => [id, depth]);

describe('the log', () => {
  test('takes answers in: a call that is told again replaces what was known', () => {
    const log = new CallLog();
    log.update({ calls: [call('a', { end: null })], since: 3, sessions: { ses_1: { title: 'One', parent: null } }, now: Date.now() + 5_000 });
    log.update({ calls: [call('a'), call('b')], since: 5, sessions: {}, now: Date.now() + 5_000 });
    expect([...log.calls.values()].map(({ id, end }) => [id, end])).toEqual([
      ['a', 100],
      ['b', 100]
    ]);
    expect([log.since, log.sessions.get('ses_1')]).toEqual([5, 'One']);
    expect(Math.abs(log.skew - 5_000)).toBeLessThan(100);
  });

  test('what a call came to, and how long it worked', () => {
    expect(outcomeOf(call('a', { outcome: 'denied by you', state: 'error' }))).toBe('denied by you');
    const failed = call('a', { outcome: 'exit code 2' });
    expect([outcomeOf(failed), toneOf(failed)]).toEqual(['exit code 2', 'err']);
    expect(outcomeOf(call('a', { end: null }))).toBe('running');
    expect(workedMs(call('a', { start: 10, end: 110, waited: 30 }), NOW)).toBe(70);
    expect(workedMs(call('a', { start: NOW - 50, end: null }), NOW)).toBe(50);
    expect(workedMs(call('a', { start: 10, end: 20, waited: 30 }), NOW)).toBe(0); // clocks that disagree
    expect(workedMs(call('a', { start: 10, end: null, state: 'error' }), NOW)).toBe(0); // its kernel died
    const asks = call('a', { start: 10, end: null, waits: [[15, 25], [60, null]], waited: 10 });
    expect([outcomeOf(asks), workedMs(asks, NOW), toneOf(asks)]).toEqual(['waiting', 40, 'ask']);
    expect(outcomeOf({ ...asks, state: 'error', outcome: '' })).toBe('error');
  });

  test('filters by each field and by words, whatever their case', () => {
    const one = call('a', { tool: 'Read', title: 'Notes.TXT', outcome: 'stopped', agent: 'plan' });
    const fits = (filter: Partial<typeof NO_FILTER>): boolean => matches(one, { ...NO_FILTER, ...filter });
    expect(fits({})).toBe(true);
    expect([fits({ tool: 'Read' }), fits({ tool: 'read' })]).toEqual([true, false]);
    expect([fits({ state: 'stopped' }), fits({ state: 'completed' })]).toEqual([true, false]);
    expect([fits({ agent: 'plan' }), fits({ session: 'ses_2' })]).toEqual([true, false]);
    expect([fits({ text: 'read notes' }), fits({ text: 'xyz' })]).toEqual([true, false]);
    expect(distinctValues([one, call('b'), call('c', { tool: '' })], ({ tool }) => tool)).toEqual(['Read', 'bash']);
  });

  test('calls stand under the one they were made in, all by their start', () => {
    const calls = [call('c', { start: 5 }), call('b2', { parent: 'b', start: 4 }), call('b', { start: 2 }), call('b1', { parent: 'b', start: 3 })];
    expect(shape([...calls, call('b11', { parent: 'b1', start: 9 })])).toEqual([
      ['b', 0],
      ['b1', 1],
      ['b11', 2],
      ['b2', 1],
      ['c', 0]
    ]);
  });

  test('a call whose outer one is not shown stands by itself', () => {
    const calls = [call('b', { tool: 'batch' }), call('b1', { parent: 'b' })];
    expect(shape(calls, { ...NO_FILTER, tool: 'bash' })).toEqual([['b1', 0]]);
    expect(shape([call('x', { parent: 'gone' })])).toEqual([['x', 0]]);
  });

  test('the outermost call', () => {
    const known = new Map([call('a'), call('b', { parent: 'a' }), call('c', { parent: 'b' })].map(one => [one.id, one]));
    expect(outermost(known.get('c') as CallRow, known).id).toBe('a');
    expect(outermost(call('z', { parent: 'gone' }), known).id).toBe('z');
  });

  test('a chain of ten thousand is no recursion', () => {
    const calls = Array.from({ length: 10_000 }, (_, at) => call(`c${at}`, { start: at, parent: at ? `c${at - 1}` : null }));
    const placed = nestCalls(calls);
    expect([placed.length, placed[9_999].depth]).toEqual([10_000, 9_999]);
  });
});

describe('the axis', () => {
  test('what overlaps or touches is one stretch; open calls go on to now', () => {
    const calls = [call('a', { start: 50, end: 60 }), call('b', { start: 0, end: 20 }), call('c', { start: 20, end: 30 }), call('d', { start: 90, end: null })];
    expect(busySpans(calls, 200)).toEqual([
      [0, 30],
      [50, 60],
      [90, 200]
    ]);
    expect(busySpans([call('a', { start: 5, end: 5 })], NOW)).toEqual([[5, 6]]);
  });

  test('an hour without calls takes two hundredths', () => {
    const hour = 3_600_000;
    const axis = new Axis([call('a', { start: 0, end: 1000 }), call('b', { start: hour, end: hour + 1000 })], NOW);
    expect(axis.at(0)).toBe(0);
    expect(axis.at(1000)).toBeCloseTo(0.49);
    expect(axis.at(hour / 2)).toBeCloseTo(0.5, 2);
    expect(axis.at(hour)).toBeCloseTo(0.51);
    expect(axis.at(hour + 1000)).toBeCloseTo(1);
    expect(axis.at(hour * 9)).toBeCloseTo(1); // beyond the end
    expect(axis.at(-5)).toBe(0);
  });

  test('unfolded, time is true to scale', () => {
    const axis = new Axis([call('a', { start: 0, end: 1000 }), call('b', { start: 9000, end: 10_000 })], NOW, false);
    expect([axis.at(1000), axis.at(5000), axis.at(9000)]).toEqual([0.1, 0.5, 0.9]);
    expect([axis.from, axis.to]).toEqual([0, 10_000]);
  });

  test('a thousand gaps leave half of the room to the calls, in order', () => {
    const calls = Array.from({ length: 1001 }, (_, at) => call(`c${at}`, { start: at * 1e6, end: at * 1e6 + 10 }));
    const axis = new Axis(calls, NOW);
    const places = calls.map(({ start }) => axis.at(start));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    const room = calls.reduce((sum, { start, end }) => sum + axis.at(end ?? 0) - axis.at(start), 0);
    expect(room).toBeCloseTo(0.5, 5);
  });

  test('no calls', () => {
    expect(new Axis([], NOW).at(NOW)).toBe(0);
  });
});

describe('totals', () => {
  test('the middle', () => {
    expect([median([]), median([3]), median([9, 1, 5]), median([1, 2, 3, 10])]).toEqual([0, 3, 5, 2.5]);
  });

  test('sums by tool, the longest first, each time in one bar', () => {
    const ends = [5, 9.5, 10, 99, 100, 1_000, 10_000, 60_000];
    const calls = ends.map((end, at) => call(`a${at}`, { end }));
    calls.push(call('r', { tool: 'read', end: 50, waited: 20, outcome: 'denied by you' }), call('o', { tool: 'read', start: NOW - 40, end: null }));
    const [bash, read] = totals(calls, NOW);
    expect(bash).toMatchObject({ tool: 'bash', calls: 8, failed: 0, open: 0, median: 99.5, histogram: [2, 2, 1, 1, 1, 1] });
    expect(bash.histogram).toHaveLength(BUCKETS.length + 1);
    expect(read).toEqual({ tool: 'read', calls: 2, failed: 1, open: 1, worked: 70, waited: 20, median: 30, histogram: [0, 1, 0, 0, 0, 0] });
    expect(totals([], NOW)).toEqual([]);
  });
});

describe('export', () => {
  test.each([
    ['plain', 'plain'],
    ['a,b', '"a,b"'],
    ['say "hi"', '"say ""hi"""'],
    ['two\nlines', '"two\nlines"'],
    ['=HYPERLINK("x")', '"\'=HYPERLINK(""x"")"'],
    ['+1', "'+1"],
    ['-rf', "'-rf"],
    ['@sum', "'@sum"],
    ['\tx', "'\tx"],
    [-5, '-5'],
    [null, ''],
    ['', '']
  ])('%j as a field', (value, field) => {
    expect(csvField(value)).toBe(field);
  });

  test('CSV has a line of names and ends its lines as RFC 4180 says', () => {
    const text = toCsv([{ call: call('a', { title: 'x, y', waited: 40 }), notebook: 'n.ipynb' }], NOW);
    const [head, line, end] = text.split('\r\n');
    expect(head).toBe(COLUMNS.join(','));
    expect(line).toBe('n.ipynb,a,,ses_1,bash,"x, y",completed,1970-01-01T00:00:00.000Z,1970-01-01T00:00:00.100Z,60,40,build,user');
    expect(end).toBe('');
  });

  test('JSON Lines hold the same, with null where nothing is', () => {
    const [one, two] = toJsonLines([{ call: call('a'), notebook: 'n' }, { call: call('b', { parent: 'a', end: null, start: NOW - 5 }), notebook: 'n' }], NOW).trimEnd().split('\n').map(line => JSON.parse(line));
    expect(Object.keys(one)).toEqual([...COLUMNS]);
    expect([one.parent, one.worked_ms]).toEqual([null, 100]);
    expect([two.parent, two.end, two.state, two.worked_ms]).toEqual(['a', null, 'running', 5]);
  });
});

describe('the timeline', () => {
  test('states in words and in looks', () => {
    const ended: Outcome[] = ['stopped', 'interrupted', 'cancelled', 'denied by you', 'dismissed by you', 'failed', 'denied by a rule'];
    expect(ended.map(outcome => toneOf(call('a', { outcome })))).toEqual(['off', 'off', 'off', 'off', 'off', 'err', 'err']);
    expect(ended.map(outcome => stateWords(part({}, { outcome })).tone)).toEqual(ended.map(outcome => toneOf(call('a', { outcome }))));
    const said = describeCall(call('a', { waited: 2_000, end: 5_000, title: 'rm\u202e x' }), NOW);
    expect(said).toContain('bash rm');
    expect(said).toContain('completed, 3.0 s, waited 2.0 s');
    expect(said).not.toContain('\u202e');
  });

  test('of ten thousand calls few are in the page; arrows and End reach every one', () => {
    const pressed: string[] = [];
    const host = document.createElement('div');
    document.body.append(host);
    const root = createRoot(host);
    const calls = Array.from({ length: 10_000 }, (_, at) => call(`c${at}`, { start: at * 10, end: at * 10 + 9, waits: [[at * 10, at * 10 + 4]] }));
    const rows = (): HTMLElement[] => [...host.querySelectorAll<HTMLElement>('.oc-time-row')];
    const draw = (shown: CallRow[]): void =>
      act(() => root.render(<Timeline calls={nestCalls(shown)} axis={new Axis(shown, NOW)} now={NOW} onPress={({ id }) => pressed.push(id)} />));
    const press = (key: string): void => act(() => void document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })));
    draw(calls);
    expect(rows().length).toBeLessThan(60);
    act(() => host.querySelector<HTMLElement>('.oc-time-list')?.focus());
    press('ArrowDown');
    expect((document.activeElement as HTMLElement).dataset.id).toBe('c0');
    press('End');
    const last = document.activeElement as HTMLElement;
    expect(last.dataset.id).toBe('c9999');
    expect(rows().length).toBeLessThan(60);
    act(() => last.click());
    expect(pressed).toEqual(['c9999']);
    expect(last.querySelectorAll('.oc-time-wait')).toHaveLength(1);
    draw([]);
    expect(rows()).toHaveLength(0);
  });
});
