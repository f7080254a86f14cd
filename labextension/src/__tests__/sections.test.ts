import { Widget } from '@lumino/widgets';

import type { PanelRequest } from '../kernel/hub';
import { CallsSection } from '../panel/calls/section';
import type { CallRow } from '../panel/calls/callLog';
import type { Section } from '../panel/section';
import { ToolPanel } from '../panel/toolPanel';
import { ToolsSection } from '../panel/tools/section';

const settle = (): Promise<unknown> => new Promise(resolve => setTimeout(resolve, 100));
const kernels = [{ id: 'k', name: 'a.ipynb' }];
let panel: ToolPanel;

afterEach(() => panel.dispose());

/** A panel of one section, or several, whose kernel answers with `reply`; the hub makes its objects anew each time. */
async function open(make: (context: never) => Section[], reply: (request: PanelRequest) => unknown): Promise<ToolPanel> {
  const fresh = () => kernels.map(kernel => ({ ...kernel }));
  const hub = {
    kernels: fresh,
    current: () => fresh()[0],
    changed: { connect: () => undefined },
    request: async (_: string, request: PanelRequest) => reply(request)
  };
  panel = new ToolPanel(hub as never, make({ app: {}, hub } as never));
  Widget.attach(panel, document.body);
  panel.hide();
  panel.show();
  await settle();
  return panel;
}

const find = <T extends HTMLElement>(selector: string): T => panel.node.querySelector<T>(selector) as T;

async function change(field: HTMLInputElement | HTMLSelectElement, value: string): Promise<void> {
  const set = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value')?.set;
  set?.call(field, value);
  field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input', { bubbles: true }));
  await settle();
}

describe('the tab of calls', () => {
  const call = { id: 'c', parent: null, session: 's', tool: 'bash', title: '', start: 0, waited: 0, waits: [], agent: '', by: 'user' };
  let row: CallRow;
  let section: CallsSection;
  const openCalls = (): Promise<ToolPanel> => {
    row = { ...call, state: 'running', outcome: '', end: null };
    return open(
      context => [(section = new CallsSection(context))],
      () => ({ calls: [row], since: 1, sessions: {}, now: Date.now() })
    );
  };

  test('a chosen state that no call has any more is chosen no longer', async () => {
    await openCalls();
    await change(find('select[aria-label=State]'), 'running');
    row = { ...row, state: 'completed', outcome: 'completed', end: 1 };
    await section.refresh();
    await settle();
    expect(find('.oc-calls-said').textContent).toBe('1 call');
    expect(find<HTMLSelectElement>('select[aria-label=State]').value).toBe('');
  });

  test('bars grow again when the panel is shown again', async () => {
    await openCalls();
    panel.hide();
    section.update();
    await settle();
    const drawn = jest.spyOn(section as unknown as { renderReply(): unknown }, 'renderReply');
    panel.show();
    await settle();
    expect(drawn).toHaveBeenCalledTimes(1);
  });
});

describe('the tab of tools', () => {
  const tool = (name: string, kind = 'builtin') => ({ name, kind, source: kind, summary: '' });
  let tools: unknown[];
  let section: ToolsSection;
  let answer: () => Promise<void> | undefined;
  const openTools = (): Promise<ToolPanel> => {
    tools = [tool('bash'), tool('grep'), tool('mine', 'cell')];
    answer = () => undefined;
    return open(
      context => [(section = new ToolsSection(context))],
      async ({ what }) => {
        if (what === 'tools') {
          return { tools, missing: [] };
        }
        await answer();
        return { name: 'bash', description: '', schema: {}, fields: [] };
      }
    );
  };
  const press = async (text: string): Promise<void> => {
    [...panel.node.querySelectorAll('button')].find(button => button.textContent?.startsWith(text))?.click();
    await settle();
  };

  test('a tool that was opened takes the focus back once', async () => {
    await openTools();
    await press('bash');
    await press('All tools');
    expect(document.activeElement?.textContent).toBe('bash');
    const field = find<HTMLInputElement>('input[type=search]');
    field.focus();
    await change(field, 'gre');
    await change(field, '');
    expect(panel.node.querySelectorAll('li button')).toHaveLength(3);
    expect(document.activeElement).toBe(field);
  });

  test('opens a tool although the list was drawn anew meanwhile', async () => {
    await openTools();
    answer = () => section.refresh().then(() => undefined);
    await press('bash');
    expect(find('button').textContent).toBe('All tools');
  });

  test('a chosen source that no tool has any more is chosen no longer', async () => {
    await openTools();
    await change(find('select[aria-label=Source]'), 'cell');
    tools = [tool('bash')];
    await section.refresh();
    await settle();
    expect([find('[role=status]:not([hidden])').textContent, find<HTMLSelectElement>('select').value]).toEqual(['1 tool', '']);
  });
});

test('an arrow key shows the next tab, which names what it controls', async () => {
  await open(
    context => [new CallsSection(context), new ToolsSection(context)],
    ({ what }) => (what === 'tools' ? { tools: [], missing: [] } : { calls: [], since: 0, sessions: {}, now: 0 })
  );
  const [calls, tools] = panel.node.querySelectorAll<HTMLElement>('[role=tab]');
  calls.focus();
  calls.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
  await settle();
  expect([document.activeElement, tools.getAttribute('aria-selected'), tools.tabIndex, calls.tabIndex]).toEqual([tools, 'true', 0, -1]);
  const page = document.getElementById(tools.getAttribute('aria-controls') ?? '');
  expect([page?.getAttribute('role'), page?.classList.contains('lm-mod-hidden')]).toEqual(['tabpanel', false]);
});
