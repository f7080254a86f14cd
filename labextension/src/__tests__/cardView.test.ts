import { disposeCard, renderCard, updateTail } from '../card';
import { DIFF, part } from './gallery';

let root: HTMLElement;
const one = (selector: string): HTMLElement => root.querySelector(selector) as HTMLElement;
const seen = (selector: string): boolean => one(selector) !== null && !one(selector).hidden;
const text = (selector: string): string => one(selector).textContent as string;

beforeEach(() => {
  jest.useFakeTimers({ now: 1_004_000 });
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  disposeCard(root);
  root.remove();
  jest.useRealTimers();
});

describe('states', () => {
  test.each([
    [{ status: 'pending' }, {}, '○', 'pending'],
    [{ status: 'running' }, {}, '◐', 'running'],
    [{ status: 'running' }, { waitsFor: 'a\u202e.txt' }, '◐', 'waiting for another change of a\\u202e.txt'],
    [{ status: 'completed' }, {}, '✓', 'completed'],
    [{ status: 'error' }, {}, '✗', 'failed'],
    [{ status: 'error' }, { outcome: 'denied by you' }, '⊘', 'denied by you'],
    [{ status: 'error' }, { outcome: 'denied by policy' }, '✗', 'denied by policy'],
    [{ status: 'error' }, { outcome: 'denied by a rule' }, '✗', 'denied by a rule'],
    [{ status: 'error' }, { outcome: 'invalid arguments' }, '✗', 'invalid arguments'],
    [{ status: 'error' }, { outcome: 'timed out' }, '✗', 'timed out'],
    [{ status: 'error' }, { outcome: 'stopped' }, '■', 'stopped'],
    [{ status: 'error' }, { outcome: 'interrupted' }, '■', 'interrupted by you'],
    [{ status: 'running' }, { outcome: 'ended' }, '■', 'ended']
  ] as const)('%j %j says %s %s', (state, ui, mark, word) => {
    renderCard(root, part(state, ui));
    expect(text('.oc-mark')).toBe(mark);
    expect(text('.oc-state')).toBe(word);
  });

  test.each([
    ['exit code 127', { exit: 127 }, '✗', 'exit code 127'],
    ['', { exit: 0 }, '✓', 'completed'],
    ['', { exit: 3 }, '✓', 'completed'], // of a tool whose exit is no failure
    ['3 lines are missing', { failed: 'three' }, '✗', '3 lines are missing'],
    // cards saved before the kernel said what failed
    [undefined, { exit: 127 }, '✗', 'exit code 127', 'bash'],
    [undefined, { exit: 3 }, '✓', 'completed', 'deploy'],
    [undefined, { exit: null }, '✓', 'completed', 'bash'],
    [undefined, { exit: null, signal: 'SIGKILL' }, '✗', 'ended by SIGKILL', 'bash'],
    [undefined, { failed: 1, totalCalls: 3 }, '✗', '1 of 3 failed', 'batch'],
    [undefined, { failed: 0, unsuccessful: 2, totalCalls: 3 }, '✗', '2 of 3 failed', 'batch'],
    [undefined, { failed: 0, totalCalls: 3 }, '✓', 'completed', 'batch']
  ])('the failure %j with %j is shown as %s %s', (failure, metadata, mark, word, tool = 'deploy') => {
    renderCard(root, part({ status: 'completed', metadata }, { failure }, { tool }));
    expect(text('.oc-mark')).toBe(mark);
    expect(text('.oc-state')).toBe(word);
  });

  test('the state is announced politely, the clock is not', () => {
    renderCard(root, part());
    expect(one('.oc-state').getAttribute('aria-live')).toBe('polite');
    expect(one('.oc-time').getAttribute('aria-hidden')).toBe('true');
  });

  test('the clock ticks while the call runs and ends with it', () => {
    renderCard(root, part());
    expect(text('.oc-time')).toBe('0:04');
    jest.advanceTimersByTime(3000);
    expect(text('.oc-time')).toBe('0:07');
    renderCard(root, part({ status: 'completed', time: { start: 1_000_000, end: 1_000_030 } }));
    expect(text('.oc-time')).toBe('0.03 s');
    expect(jest.getTimerCount()).toBe(0);
  });

  test('the clock of a card that left the page ends', () => {
    renderCard(root, part());
    root.remove();
    jest.advanceTimersByTime(1000);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('waiting for a person is not counted as running', () => {
    renderCard(root, part({}, { waited: 3000 }));
    expect(text('.oc-time')).toBe('0:01');
    renderCard(root, part({ status: 'completed', time: { start: 1_000_000, end: 1_004_400 } }, { waited: 4000 }));
    expect(text('.oc-time')).toBe('0.4 s · waited 4.0 s');
  });
});

describe('body', () => {
  test('a diff has line numbers and signs', () => {
    renderCard(root, part({ status: 'completed', output: 'ok' }, { diff: DIFF }));
    const rows = [...root.querySelectorAll('.oc-diff .oc-row')].map(row => row.textContent);
    expect(rows).toEqual([
      '12   df = pd.read_csv(path)',
      '13 - removed: df = df.dropna()',
      '13 + added: df = df.dropna(subset=["price"])',
      '14 + added: df["price"] = df["price"].astype(float)'
    ]);
    expect(root.querySelectorAll('.oc-add')).toHaveLength(2);
  });

  test('live output: the tail, replaced by custom messages, its colours kept', () => {
    renderCard(root, part({}, { tail: 'one\n', lines: 1, bytes: 4 }));
    updateTail(root, { text: 'one\n\u001b[31mtwo\u001b[0m\n', lines: 2, bytes: 8, progress: { value: 1, total: 4 } });
    expect(text('.oc-out')).toBe('one\ntwo');
    expect(one('.oc-out span').style.color).toBe('var(--oc-ansi-1)');
    expect(text('.oc-decisions')).toBe('2 lines, 8 B so far');
    expect(one('.oc-bar').getAttribute('aria-valuenow')).toBe('25');
    // an older whole update that comes late does not take the newer tail back
    renderCard(root, part({}, { tail: 'one\n', lines: 1, bytes: 4 }));
    expect(text('.oc-out')).toBe('one\ntwo');
  });

  test('a whole update is newer than the tail before it, also where no bytes are counted', () => {
    renderCard(root, part({}, { tail: 'a' }));
    updateTail(root, { text: 'a b' });
    renderCard(root, part({}, { tail: 'a b c' }));
    expect(text('.oc-out')).toBe('a b c');
    // one without output leaves it be
    updateTail(root, { text: 'a b c d' });
    renderCard(root, part({}, { progress: { value: 1 } }));
    expect(text('.oc-out')).toBe('a b c d');
  });

  test('what there was of an output stays when the call did not end well', () => {
    renderCard(root, part({ status: 'running' }, { outcome: 'ended', tail: 'half' }));
    expect(text('.oc-out')).toBe('half');
  });

  test('of an output with a wrapper for the model, the lines inside are shown', () => {
    const output = '<path>/a</path>\n<content>\n1: x\n\n(End of file)\n</content>\nmore';
    renderCard(root, part({ status: 'completed', output }, { shown: [2, 5] }));
    expect(text('.oc-out')).toBe('1: x\n\n(End of file)');
  });

  test('the whole output takes the place of the tail', () => {
    renderCard(root, part({}, { tail: 'tail' }));
    renderCard(root, part({ status: 'completed', output: 'all of it' }, { tail: 'tail' }));
    expect(text('.oc-out')).toBe('all of it');
  });

  test('progress of unknown length has no value', () => {
    renderCard(root, part({}, { progress: { value: 3, message: 'three files' } }));
    expect(one('.oc-bar').hasAttribute('aria-valuenow')).toBe(false);
    expect(text('.oc-message')).toBe('three files');
  });

  test('a cut output says how much there is and where', () => {
    const open = jest.fn();
    const spill = { path: '/tmp/tool_1', bytes: 18_432, lines: 214, line: 101 };
    renderCard(root, part({ status: 'completed', output: 'x' }, { spill }), { open });
    expect(text('.oc-cut')).toContain('214 lines, 18 KB; the rest is kept');
    expect(text('.oc-path code')).toBe('/tmp/tool_1');
    one('.oc-link').click();
    expect(open).toHaveBeenCalledWith({ ...spill, title: 'edit: src/clean.py' });
    disposeCard(root);
    renderCard(root, part({ status: 'completed', output: 'x' }, { spill: { ...spill, url: 'files/tool_1' } }));
    expect(one('.oc-cut a').getAttribute('href')).toBe('files/tool_1');
    expect(text('.oc-cut a')).toBe('Open the whole output at line 101');
  });

  test('nested calls are cards of their own and stay the same nodes', () => {
    const child = part({ status: 'running' }, { label: 'a' }, { id: 'prt_2', callID: 'call_2', tool: 'read' });
    renderCard(root, part({}, { children: [child] }));
    const before = one('.oc-nest .oc-card');
    renderCard(root, part({}, { children: [{ ...child, state: { ...child.state, status: 'completed' } }] }));
    expect(one('.oc-nest .oc-card')).toBe(before);
    expect(text('.oc-nest .oc-state')).toBe('completed');
    renderCard(root, part({}, { children: [] }));
    expect(one('.oc-nest .oc-card')).toBeNull();
  });

  test('decisions are told with who or which rule decided', () => {
    const rule = { permission: 'edit', pattern: '*', action: 'allow', origin: 'opencode.json' } as const;
    renderCard(
      root,
      part({ status: 'completed' }, {
        decisions: [
          { permission: 'edit', patterns: ['a'], action: 'allow', by: 'rule', rule },
          { permission: 'edit', patterns: ['a'], action: 'allow', by: 'card', reply: 'always', note: 'also saved.' },
          { permission: 'edit', patterns: ['a'], action: 'deny', by: 'policy', reply: 'reject', message: 'no' }
        ]
      })
    );
    expect(text('.oc-decisions')).toBe('rule edit *: allow from opencode.json · allowed for this session by you (also saved) · denied by policy (nobody could approve it): “no”');
  });

  test('the code of an error stands in the last line', () => {
    renderCard(root, part({ status: 'error', error: 'A rule denies this call.' }, { code: 'OJ-permission-denied' }));
    expect(text('.oc-decisions')).toBe('OJ-permission-denied');
    expect(root.querySelector('.oc-decisions button')).toBeNull();
  });

  test('the code opens its explanation where the page has one, and keeps the focus while the card is drawn anew', () => {
    const explained: string[] = [];
    const denied = part({ status: 'error', error: 'A rule denies this call.' }, { by: 'model', code: 'OJ-permission-denied' });
    const draw = (): void => renderCard(root, denied, { explain: code => explained.push(code) });
    draw();
    const code = one('.oc-decisions button') as HTMLButtonElement;
    code.focus();
    draw();
    expect(document.activeElement).toBe(code);
    code.click();
    expect(explained).toEqual(['OJ-permission-denied']);
    expect(text('.oc-decisions')).toBe('called by the model · OJ-permission-denied');
  });

  test('trust is told as what it is', () => {
    const trust = { permission: 'trust', patterns: ['.opencode/tool/a.py'], by: 'card' };
    renderCard(
      root,
      part({ status: 'completed' }, {
        decisions: [
          { ...trust, action: 'allow', reply: 'once' },
          { ...trust, action: 'deny', reply: 'reject' }
        ]
      })
    );
    expect(text('.oc-decisions')).toBe('trusted by you, until it changes · not trusted by you');
  });

  test('the input is drawn when it is opened', () => {
    renderCard(root, part());
    const details = one('.oc-input') as HTMLDetailsElement;
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
    expect(JSON.parse(text('.oc-input pre'))).toEqual({ filePath: 'src/clean.py' });
  });

  test('an update that changes nothing in the output leaves its nodes alone', () => {
    renderCard(root, part({}, { tail: 'abc' }));
    const node = one('.oc-out').firstChild;
    renderCard(root, part({}, { tail: 'abc', lines: 3 }));
    expect(one('.oc-out').firstChild).toBe(node);
  });
});

describe('Stop', () => {
  test('is there while the call runs and sends the call', () => {
    const stop = jest.fn();
    renderCard(root, part(), { stop });
    const button = one('.oc-head button') as HTMLButtonElement;
    button.click();
    expect(stop).toHaveBeenCalledWith('call_1');
    expect(button.disabled).toBe(true);
    renderCard(root, part({ status: 'error' }, { outcome: 'stopped' }));
    expect(button.hidden).toBe(true);
  });

  test('is absent without a callback', () => {
    renderCard(root, part());
    expect(seen('.oc-head button')).toBe(false);
  });
});

describe('hostile input', () => {
  const evil = '<img src=x onerror="alert(1)"></style><script>alert(1)</script>\u202e\u200b\u0007';

  test('stays text everywhere', () => {
    const nasty = part(
      { status: 'error', output: evil, error: `${evil} error`, input: { [evil]: evil } },
      {
        label: evil,
        diff: `@@ -1 +1 @@\n-${evil}\n+x`,
        decisions: [{ permission: 'x', patterns: [], action: 'deny', by: evil, message: evil }],
        spill: { path: evil, bytes: 1, lines: 1, line: 1, url: 'javascript:alert(1)' }
      },
      { tool: evil }
    );
    nasty.state.attachments = [
      { mime: 'image/svg+xml', url: 'data:image/svg+xml;base64,AAAA', filename: evil },
      { mime: 'image/png', url: 'https://example.org/a.png' },
      { mime: 'image/png', url: 'data:image/png;base64,AAAA' }
    ];
    renderCard(root, nasty);
    (one('.oc-input') as HTMLDetailsElement).open = true;
    renderCard(root, { ...nasty });
    expect(root.querySelectorAll('script, style')).toHaveLength(0);
    expect([...root.querySelectorAll('img')].map(img => img.getAttribute('src'))).toEqual(['data:image/png;base64,AAAA']);
    expect(root.querySelectorAll('a')).toHaveLength(0);
    expect(text('.oc-title')).toContain('<script>');
    expect(text('.oc-title')).toContain('\\u202e\\u200b\\x07');
    expect(root.textContent).not.toMatch(/\u202e/);
  });

  test('a line of a megabyte and deep JSON are drawn', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 500; i++) {
      deep = { deep };
    }
    renderCard(root, part({ status: 'completed', output: 'x'.repeat(1_000_000), input: { deep } }));
    (one('.oc-input') as HTMLDetailsElement).open = true;
    renderCard(root, part({ status: 'completed', output: 'y'.repeat(1_000_000), input: { deep } }));
    expect(text('.oc-out')).toHaveLength(1_000_000);
    expect(text('.oc-input pre').length).toBeLessThan(110_000);
  });
});
