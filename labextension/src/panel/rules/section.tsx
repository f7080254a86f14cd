/** The tab of permissions: the rules in force, changing them, the mode, and trying out what they decide. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { errorMessage } from '../../card/format';
import { trans } from '../../card/i18n';
import type { PanelRequest } from '../../kernel/hub';
import { Form, Select, Status, TextField } from '../formControls';
import { KernelSection } from '../kernelSection';
import type { PanelContext } from '../section';
import type { RuleRow, RulesReply, TestReply } from './messages';
import { RulesTable } from './rulesTable';
import { RuleTest } from './ruleTest';

const KNOWN = 'oc-rules-known';
const ACTIONS = ['allow', 'ask', 'deny'];

export class RulesSection extends KernelSection<RulesReply> {
  private caller = 'user';
  private agent = '';
  private status = '';

  constructor(context: PanelContext) {
    super(context, 'rules', trans.__('Permissions'), ['rules']);
  }

  protected request(): PanelRequest {
    return { what: 'rules', ...this.whose() };
  }

  protected receive(reply: RulesReply): void {
    super.receive(reply);
    this.agent = reply.agent;
  }

  protected reset(): void {
    super.reset();
    this.status = '';
  }

  protected renderReply({ mode, modes, agents, agent, permissions, rules }: RulesReply): ReactElement {
    const choose = (field: 'caller' | 'agent') => (value: string) => {
      this[field] = value;
      void this.refresh();
    };
    return (
      <>
        <datalist id={KNOWN}>
          {permissions.map(name => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <div className="oc-panel-bar">
          <Select label={trans.__('Mode')} value={mode} choices={Object.keys(modes)} onChange={name => void this.change({ what: 'rule_mode', mode: name })} />
          <Select
            label={trans.__('Caller')}
            value={this.caller}
            choices={[
              ['user', trans.__('you')],
              ['model', trans.__('a model')]
            ]}
            onChange={choose('caller')}
          />
          <Select label={trans.__('Agent')} value={agent} choices={[...new Set([...agents, agent])]} onChange={choose('agent')} />
        </div>
        <p className="oc-rules-origin">{modes[mode]}</p>
        <h3 className="oc-panel-head">{trans.__('What would happen if…')}</h3>
        <RuleTest list={KNOWN} test={(name, text) => this.send<TestReply>({ what: 'rule_test', name, text })} />
        <h3 className="oc-panel-head">{trans.__('Add a rule')}</h3>
        <Form className="oc-rules-add" submit={trans.__('Add')} onSubmit={(values, form) => void this.add(values, form)}>
          <Select label={trans.__('Action')} name="action" choices={ACTIONS} />
          <TextField label={trans.__('Permission')} name="permission" list={KNOWN} required />
          <TextField label={trans.__('Pattern')} name="pattern" placeholder="*" />
          <Select
            label={trans.__('Scope')}
            name="scope"
            choices={[
              ['session', trans.__('this session')],
              ['project', trans.__('the project')]
            ]}
          />
        </Form>
        <Status>{this.status}</Status>
        <h3 className="oc-panel-head">{trans.__('Rules')}</h3>
        <p className="oc-rules-origin">{trans.__('The last matching rule decides.')}</p>
        {rules.length > 0 && <RulesTable rules={rules} revoke={rule => void this.revoke(rule)} />}
      </>
    );
  }

  private async add({ permission, pattern, action, scope }: Record<string, string>, form: HTMLFormElement): Promise<void> {
    const request = { what: 'rule_add', permission, pattern, action, project: scope === 'project' };
    if (await this.change(request, trans.__('Added: %1', `${permission} ${pattern || '*'} ${action}`))) {
      form.querySelectorAll('input').forEach(field => (field.value = ''));
    }
  }

  private async revoke(rule: RuleRow): Promise<void> {
    await this.change({ what: 'rule_revoke', n: rule.n, rule }, trans.__('Revoked: %1', `${rule.permission} ${rule.pattern} ${rule.action}`));
  }

  /** Has the kernel change something, and reports how it went. False if nothing changed. */
  private async change(request: PanelRequest, done = ''): Promise<boolean> {
    try {
      const { notes = [] } = await this.send<{ notes?: string[] }>(request);
      this.status = [done, ...notes].filter(Boolean).join(' · ');
      return true;
    } catch (error) {
      this.status = errorMessage(error);
      return false;
    } finally {
      await this.refresh();
    }
  }

  private send<T>(request: PanelRequest): Promise<T> {
    return this.context.hub.request<T>(this.kernel?.id ?? '', { ...request, ...this.whose() });
  }

  private whose(): { agent: string; by: string } {
    return { agent: this.agent, by: this.caller };
  }
}
