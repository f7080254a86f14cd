/** The tab of permissions: the rules in force, changing them, the mode, and trying out what they decide. */

import { el, setText, show } from '../../card/dom';
import { trans } from '../../card/i18n';
import { form, labelled, offer, statusLine, wordsOf } from '../controls';
import { Chooser } from '../kernelChooser';
import type { MakeSection, Surroundings } from '../section';
import { RulesTable } from './table';
import { Tester } from './tester';
import type { RuleRow, RulesReply, TestReply } from './messages';

const KNOWN = 'oc-rules-known';
const ACTIONS = ['allow', 'ask', 'deny'];

class RulesSection {
  readonly node = el('div', 'oc-rules');
  private readonly chooser: Chooser;
  private readonly inner = el('div');
  private readonly mode = el('select', 'oc-panel-select');
  private readonly means = el('p', 'oc-rules-origin');
  private readonly by = el('select', 'oc-panel-select');
  private readonly agent = el('select', 'oc-panel-select');
  private readonly known = el('datalist');
  private readonly status = statusLine();
  private readonly table = new RulesTable(rule => void this.revoke(rule));
  private readonly permission = el('input', 'oc-panel-input');
  private readonly pattern = el('input', 'oc-panel-input');
  private readonly action = el('select', 'oc-panel-select');
  private readonly lasting = el('select', 'oc-panel-select');

  constructor(private readonly around: Surroundings) {
    const draw = (): void => void this.update();
    this.chooser = new Chooser(around.hub, draw);
    this.known.id = KNOWN;
    offer(this.by, [
      ['user', trans.__('you')],
      ['model', trans.__('a model')]
    ]);
    this.by.addEventListener('change', draw);
    this.agent.addEventListener('change', draw);
    this.mode.addEventListener('change', () => void this.act({ what: 'rule_mode', mode: this.mode.value }));
    const tester = new Tester(KNOWN, (name, text) =>
      around.hub.request<TestReply>(this.chooser.shown, { what: 'rule_test', name, text, ...this.whose() })
    );
    const bar = el('div', 'oc-panel-bar');
    bar.append(
      labelled(trans.__('Mode'), this.mode),
      labelled(trans.__('Caller'), this.by),
      labelled(trans.__('Agent'), this.agent)
    );
    this.inner.append(
      this.known,
      bar,
      this.means,
      el('h3', 'oc-panel-head', trans.__('What would happen if…')),
      tester.node,
      el('h3', 'oc-panel-head', trans.__('Add a rule')),
      this.adder(),
      this.status,
      el('h3', 'oc-panel-head', trans.__('Rules')),
      el('p', 'oc-rules-origin', trans.__('The last matching rule decides.')),
      this.table.node
    );
    this.node.append(this.chooser.node, this.inner);
  }

  update(): Promise<boolean> {
    show(this.inner, this.chooser.kernel() !== undefined);
    const request = () => ({ what: 'rules', ...this.whose() });
    return this.chooser.read<RulesReply>(request, reply => this.draw(reply), () => setText(this.status, ''));
  }

  private draw(reply: RulesReply): void {
    offer(this.mode, Object.keys(reply.modes).map(name => [name, name] as const));
    this.mode.value = reply.mode;
    setText(this.means, reply.modes[reply.mode] ?? '');
    offer(this.agent, reply.agents.map(name => [name, name] as const));
    if (!reply.agents.includes(reply.agent)) {
      this.agent.add(new Option(reply.agent, reply.agent));
    }
    this.agent.value = reply.agent;
    if (this.known.dataset.names !== reply.permissions.join()) {
      this.known.dataset.names = reply.permissions.join();
      this.known.replaceChildren(...reply.permissions.map(name => new Option(name, name)));
    }
    this.table.update(reply.rules);
  }

  private adder(): HTMLElement {
    this.permission.setAttribute('list', KNOWN);
    this.permission.required = true;
    this.pattern.placeholder = '*';
    this.permission.spellcheck = this.pattern.spellcheck = false;
    offer(this.action, ACTIONS.map(name => [name, name] as const));
    offer(this.lasting, [
      ['', trans.__('this session')],
      ['project', trans.__('the project')]
    ]);
    const fields = [
      labelled(trans.__('Action'), this.action),
      labelled(trans.__('Permission'), this.permission),
      labelled(trans.__('Pattern'), this.pattern),
      labelled(trans.__('Scope'), this.lasting)
    ];
    return form('oc-rules-add', fields, trans.__('Add'), () => void this.add());
  }

  private async add(): Promise<void> {
    const [permission, pattern, action] = [this.permission.value, this.pattern.value, this.action.value];
    const request = { what: 'rule_add', permission, pattern, action, project: this.lasting.value === 'project' };
    if (await this.act(request, trans.__('Added: %1', `${permission} ${pattern || '*'} ${action}`))) {
      this.permission.value = this.pattern.value = '';
    }
  }

  private async revoke(rule: RuleRow): Promise<void> {
    const done = trans.__('Revoked: %1', `${rule.permission} ${rule.pattern} ${rule.action}`);
    await this.act({ what: 'rule_revoke', n: rule.n, rule }, done);
  }

  /** Has the kernel change something, and says what came of it. False if nothing did. */
  private async act(request: { what: string; [field: string]: unknown }, done = ''): Promise<boolean> {
    const id = this.chooser.shown;
    try {
      const { notes } = await this.around.hub.request<{ notes?: string[] }>(id, { ...request, ...this.whose() });
      setText(this.status, [done, ...(notes ?? [])].filter(Boolean).join(' · '));
      return true;
    } catch (error) {
      setText(this.status, wordsOf(error));
      return false;
    } finally {
      await this.update();
    }
  }

  private whose(): { agent: string; by: string } {
    return { agent: this.agent.value, by: this.by.value };
  }
}

/** Makes the section. */
export const makeRules: MakeSection = around => {
  const section = new RulesSection(around);
  return { id: 'rules', title: trans.__('Permissions'), node: section.node, topics: ['rules'], update: () => section.update() };
};
