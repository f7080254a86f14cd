import { nextAfter, similarTo, requestOf, compareAge, similarityKey } from '../panel/approvals/approvalModel';
import type { Approval } from '../panel/approvals/approvalModel';
import { findCard, cellIndexOf, goToCard, isInSight } from '../panel/approvals/cardLocation';
import { notificationText } from '../panel/approvals/notificationText';
import { CARD_MIME } from '../card';
import type { CardAsk } from '../card';
import { RUN_MIME } from '../run';

function entry(id: string, ask: Partial<CardAsk> | null, more: Partial<Approval> = {}): Approval {
  const given = { id, permission: 'bash', patterns: ['ls'], always: ['ls *'], digest: 'd', asked: 1, ...ask };
  const question = { id, digest: 'd', asked: 1, questions: [] };
  const ui = ask ? { ask: given } : { question };
  return { id, callID: `call_${id}`, commID: 'c', key: `call_${id}`, kernelId: 'k', name: 'work.ipynb', card: { tool: 'bash', ui } as never, ...more };
}

describe('the model', () => {
  test('oldest first, by id where the clocks agree, a question among requests', () => {
    const all = [entry('c', { asked: 5 }), entry('b', { asked: 3 }), entry('a', { asked: 3 }), entry('q', null)];
    expect(all.sort(compareAge).map(({ id }) => id)).toEqual(['q', 'a', 'b', 'c']);
    expect(compareAge(all[0], all[0])).toBe(0);
    expect(requestOf({ ...entry('x', {}), card: undefined })).toBeUndefined();
  });

  test('alike: the same tool, permission and patterns to allow, in any order; a question only itself', () => {
    const one = entry('1', { always: ['b', 'a'], patterns: ['a 1'] });
    const same = entry('2', { always: ['a', 'b'], patterns: ['a 2'] }, { kernelId: 'other' });
    const others = [entry('3', { always: ['a'] }), entry('4', { always: ['a', 'b'], permission: 'edit' }), entry('5', null), entry('6', null)];
    others.push({ ...entry('7', { always: ['a', 'b'] }), card: { tool: 'mine', ui: entry('7', { always: ['a', 'b'] }).card?.ui } as never });
    const all = [one, same, ...others];
    expect(similarTo(one, all).map(({ id }) => id)).toEqual(['1', '2']);
    expect(similarTo(others[2], all).map(({ id }) => id)).toEqual(['5']);
    expect(similarityKey(one)).toBe(similarityKey(same));
    expect(one.card?.ui.ask?.always).toEqual(['b', 'a']); // sorting changes no entry
  });

  test('the next one, round to the first', () => {
    const all = [entry('a', {}), entry('b', {})];
    expect([nextAfter(all, 'a')?.id, nextAfter(all, 'b')?.id, nextAfter(all, 'gone')?.id, nextAfter([], 'a')]).toEqual(['b', 'a', 'a', undefined]);
  });
});

describe('what a notification says', () => {
  test('all of a short ask: it may be allowed there', () => {
    expect(notificationText(entry('a', { patterns: ['git push'] }))).toEqual({ text: 'work.ipynb: bash needs approval: git push', whole: true });
  });

  test.each<[string, Partial<CardAsk>]>([
    ['a long command', { command: `echo ${'x'.repeat(200)}` }],
    ['several lines', { command: 'ls\nrm -rf /' }],
    ['several patterns', { patterns: ['a', 'b'] }],
    ['a change of a file', { diff: '+x' }],
    ['code to trust', { permission: 'trust' }]
  ])('%s only leads there', (_, ask) => {
    const { text, whole } = notificationText(entry('a', ask));
    expect(whole).toBe(false);
    expect(text.length).toBeLessThanOrEqual(140);
    expect(text).not.toContain('\n');
  });

  test('a question, and names that try to deceive', () => {
    expect(notificationText(entry('a', null))).toEqual({ text: 'work.ipynb: a question is waiting for your answer', whole: false });
    expect(notificationText(entry('a', { patterns: ['x'] }, { name: 'a\u202egpj.exe\n' })).text).not.toMatch(/[\u202e\n]/);
  });
});

describe('where a card stands', () => {
  beforeAll(() => {
    globalThis.CSS ??= { escape: (text: string) => text.replace(/["\\]/g, '\\$&') } as typeof CSS; // jsdom has none
  });

  const output = (data: Record<string, unknown>) => ({ data });
  const panelOf = (...cells: { data: unknown }[][]) => {
    const model = {
      cells: {
        length: cells.length,
        get: (at: number) => ({ outputs: { length: cells[at].length, get: (index: number) => cells[at][index] } })
      }
    };
    const widgets = cells.map((_, at) => at);
    const scrolled: unknown[] = [];
    const content = { model, widgets, activeCellIndex: 0, scrollToCell: async (cell: unknown) => void scrolled.push(cell) };
    return { id: 'p', node: document.createElement('div'), content, scrolled };
  };

  test('the last cell whose output holds the call, a live card or a run with it', () => {
    const panel = panelOf(
      [output({ 'text/plain': 'x' }), output({ [CARD_MIME]: { callID: 'one', id: 'prt_1' } })],
      [],
      [output({ [RUN_MIME]: { id: 'run_1', items: [{ kind: 'text' }, { kind: 'call', part: { id: 'prt_2', callID: 'two' } }] } })],
      [output({ [CARD_MIME]: { callID: 'one' } })],
      [output({ [RUN_MIME]: { id: 'run_2', items: 'nonsense' } })]
    ) as never;
    expect(['one', 'prt_1', 'two', 'prt_2', 'run_1', 'run_2', 'gone'].map(key => cellIndexOf(panel, key))).toEqual([3, 0, 2, 2, 2, 4, -1]);
    expect(cellIndexOf({} as never, 'one')).toBe(-1);
  });

  test('going there brings the cell into view and focuses the card', async () => {
    const panel = panelOf([], [output({ [CARD_MIME]: { callID: 'a"b' } })]);
    const card = document.createElement('div');
    card.className = 'oc-card';
    card.dataset.call = 'a"b';
    card.tabIndex = -1;
    card.scrollIntoView = () => undefined;
    document.body.append(panel.node);
    setTimeout(() => panel.node.append(card), 80); // drawn when the cell came into view
    const activated: string[] = [];
    const app = { shell: { activateById: (id: string) => activated.push(id) } };
    expect(await goToCard(app as never, panel as never, 'a"b')).toBe(card);
    expect([activated, panel.content.activeCellIndex, panel.scrolled, document.activeElement]).toEqual([['p'], 1, [1], card]);
    expect(findCard(panel.node, 'a')).toBeNull();
  });

  test('what a frame that scrolls hides is out of sight', () => {
    const frame = document.createElement('div');
    const card = document.createElement('div');
    frame.style.overflowY = 'auto';
    frame.append(card);
    document.body.append(frame);
    const box = (node: HTMLElement, top: number, bottom: number): void => {
      node.getBoundingClientRect = () => ({ top, bottom, width: 100, height: bottom - top }) as DOMRect;
    };
    box(frame, 0, 300);
    const seen = (top: number, bottom: number): boolean => {
      box(card, top, bottom);
      return isInSight(card);
    };
    expect([seen(100, 200), seen(250, 500), seen(290, 500), seen(400, 500), seen(-90, -10), seen(10, 10)]).toEqual([true, true, false, false, false, false]);
  });
});
