/** Whatever a tool wrote, and whatever a saved notebook holds, shows as text. */

import hostile from '../../../tests/data/hostile.json';
import { disposeCard, renderCard } from '../card';
import type { CardPart } from '../card';
import { ansiText } from '../card/ansi';
import { visibleLine } from '../card/format';
import { checkedPart, checkedRun } from '../card/savedCheck';
import mime from '../mime';
import { disposeRun, renderRun } from '../run';
import { markdown } from '../run/markdown';
import { ASK, part, QUESTION } from './gallery';

let root: HTMLElement;

beforeEach(() => {
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  disposeCard(root);
  disposeRun(root);
  root.remove();
  expect((globalThis as { __hit?: string }).__hit).toBeUndefined();
});

const diffOf = (text: string): string => `--- a\n+++ b\n@@ -1,1 +1,1 @@\n-${text.replace(/\n/g, ' ')}\n+new\n`;

/** A part with `text` wherever a text can be. */
function full(text: string, rest: Partial<CardPart> = {}): CardPart {
  const rule = { permission: text, pattern: text, action: 'ask' as const, origin: text };
  const cell = { index: 0, id: text, type: text, executed: 1, line: 0, source: 1, output: 1, outputs: 1 };
  return part(
    {
      status: 'completed', output: text, title: text, error: text, raw: text, input: { [text]: text }, metadata: { [text]: text },
      attachments: [{ mime: text, url: text, filename: text }], time: { start: 1, end: 2 }
    },
    {
      label: text, tail: text, diff: diffOf(text), files: [text], spill: { path: text, url: text, bytes: 1, lines: 1, line: 1 },
      diffs: [{ path: text, type: text, diff: diffOf(text), from: text, additions: 1 }],
      decisions: [{ permission: text, patterns: [text, text], action: 'allow', by: text, rule, rules: [rule, rule], message: text, note: text }],
      tasks: [{ content: text, status: 'pending', priority: text }], table: { columns: [text], rows: [[text]], total: 1 },
      answered: [{ questions: [{ question: text, header: text }], answers: [[text]], by: text }], progress: { value: 1, message: text },
      cells: { cells: [cell, { ...cell, type: 'code' }], total: 9, language: text, notes: [text] },
      children: [part({ status: 'error', error: text }, { label: text, outcome: text as never }, { id: text, tool: text })]
    },
    { tool: text, id: text, ...rest }
  );
}

function expectInert(): void {
  expect(root.querySelectorAll('script, style, link, svg, iframe, object, embed, form, meta, base, math, marquee')).toHaveLength(0);
  // gathered: an `expect` for each attribute would take most of the time
  const wrong: string[] = [];
  for (const node of root.querySelectorAll('*')) {
    for (const { name, value } of node.attributes) {
      if (
        /^on|^srcdoc$|^action$/.test(name) ||
        (name === 'href' && /^\s*(?:javascript|data|vbscript):/i.test(value)) ||
        (name === 'src' && !/^data:image\/(?:png|jpeg|gif|webp)/.test(value)) ||
        (name === 'style' && /url\(/.test(value))
      ) {
        wrong.push(`${node.tagName} ${name}=${value}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  // nothing that reorders or hides, and no control characters
  expect(root.textContent).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
}

describe.each(hostile)('%j', text => {
  test('saved', () => {
    const saved = checkedPart(full(text)) as CardPart;
    expect(saved).toEqual(full(text));
    renderCard(root, saved, { more: () => document.createElement('i') });
    root.querySelectorAll('details').forEach(fold => {
      fold.open = true;
      fold.dispatchEvent(new Event('toggle'));
    });
    expectInert();
    expect(root.querySelector('.oc-title')?.textContent).toBe(visibleLine(text));
    expect(root.querySelector('.oc-error')?.textContent).toBe(ansiText(text));
  });

  test('live, asking and questioning', () => {
    const callbacks = { reply: () => undefined, answer: () => undefined, stop: () => undefined };
    const rule = { permission: text, pattern: text, action: 'ask' as const, origin: text };
    const ask = {
      ...ASK, permission: text, patterns: [text, text], always: [text], command: text, diff: diffOf(text), path: text, rule,
      rules: [rule, rule], diffs: [{ path: text, type: text, diff: diffOf(text) }]
    };
    renderCard(root, part({ status: 'running' }, { label: text, tail: text, ask, progress: { value: 1, message: text } }), callbacks);
    expectInert();
    const questions = [{ question: text, header: text, options: [{ label: text, description: text }] }];
    renderCard(root, part({ status: 'running' }, { label: text, question: { ...QUESTION, questions } }), callbacks);
    expectInert();
  });

  test('a run', () => {
    const run = checkedRun({
      v: 1, id: text, sessionID: text, title: text, agent: text, model: text, mode: text, status: 'failed', step: 1, tokens: 1,
      started: 1, end: { tone: 'err', text, advice: text },
      items: [
        { kind: 'text', id: '1', text }, { kind: 'reasoning', id: '2', text }, { kind: 'note', id: '3', text },
        { kind: 'call', id: text, parent: text, part: full(text) }
      ]
    });
    expect(run).toBeDefined();
    renderRun(root, run as never);
    expectInert();
  });
});

/** Every value in `json` exchanged for each of `others`, one at a time. */
function* exchanged(json: unknown, others: unknown[]): Generator<unknown> {
  if (typeof json === 'object' && json !== null) {
    for (const [key, value] of Object.entries(json)) {
      for (const inner of [...others, ...exchanged(value, others)]) {
        yield Array.isArray(json) ? Object.assign([...json], { [key]: inner }) : { ...json, [key]: inner };
      }
    }
  }
}

test('any type in any field', () => {
  const others = [null, 5, -1e308, true, 'text', [], {}, [[[]]], [null], { length: 3 }, '__proto__'];
  const usual = JSON.stringify(full('x'));
  const drawn = new Set<string>([usual]);
  for (const other of exchanged(full('x'), others)) {
    const saved = checkedPart(other);
    const json = JSON.stringify(saved);
    // many mistakes come to the same: each outcome is drawn once
    if (saved && !drawn.has(json)) {
      drawn.add(json);
      if (drawn.size % 4 === 0) {
        expect(checkedPart(saved)).toEqual(saved);
        renderCard(root, saved);
        expect(root.querySelector('.oc-head')).not.toBeNull();
      }
    }
  }
  expect(drawn.size).toBeGreaterThan(200);
});

test('deep and large', async () => {
  let deep: unknown = 'end';
  for (let level = 0; level < 3_000; level++) {
    deep = level % 2 ? [deep] : { deep };
  }
  let nested = full('x');
  for (let level = 0; level < 200; level++) {
    nested = part({ status: 'completed' }, { children: [nested] });
  }
  const long = `${'\u001b[31mx'.repeat(20_000)}${'y'.repeat(1_000_000)}\r\n${'z'.repeat(10)}`;
  const cards = [
    part({ status: 'completed', input: { deep }, metadata: { deep }, output: deep as string }),
    nested,
    part({ status: 'completed', output: long, error: 'x' }, { label: long, diff: long })
  ];
  for (const data of cards) {
    const renderer = mime.rendererFactory.createRenderer({} as never);
    await renderer.renderModel({ data: { 'application/vnd.opencode.toolpart.v1+json': data } } as never);
    expect(renderer.node.querySelector('.oc-head')).not.toBeNull();
    renderer.dispose();
  }
});

test('no text holds up the page', () => {
  const many = 60_000;
  const texts = [
    `${'\u0090'.repeat(many)}\u001bX`, `\u001b]${'\u009d'.repeat(many)}\u001bX`, `${'\r'.repeat(many)}x`, `# a${' '.repeat(many)}b`,
    `# a${'#'.repeat(many)}b`, `\`\`\`${' '.repeat(many)}\``, `${'~'.repeat(many)}\``, `${'**a '.repeat(490)}\n`.repeat(30)
  ];
  for (const text of texts) {
    const began = performance.now();
    ansiText(text);
    markdown(text);
    // where ends are looked for again and again, each takes from many seconds to hours
    expect([text.slice(0, 5), performance.now() - began < 3_000]).toEqual([text.slice(0, 5), true]);
  }
});

test('calls that are inside each other', () => {
  const call = (id: string, parent: string): unknown => ({ kind: 'call', id, parent, part: part({ status: 'completed' }, {}, { id }) });
  const items = [call('a', 'b'), call('b', 'a'), call('c', 'c')];
  renderRun(root, checkedRun({ v: 1, items, agent: 'a', model: 'm', status: 'done' }) as never);
  expect(root.querySelectorAll('.oc-call').length).toBeGreaterThan(0);
});

test('what is no card, or of a later version, is none', () => {
  for (const data of [null, 5, 'x', [], {}, { v: 2, state: {}, ui: {} }, { v: 1 }, { v: 1, state: [], ui: {} }]) {
    expect(checkedPart(data)).toBeUndefined();
    expect(checkedRun(data)).toBeUndefined();
  }
});
