/** The tab of calls: what ran, when, how long and what it waited for; filtered, summed up, saved as a file. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { duration } from '../../card/format';
import { outcomeWord } from '../../card/wording';
import { trans } from '../../card/i18n';
import type { PanelRequest } from '../../kernel/hub';
import { saveBlob } from '../../viewer/download';
import { goToCard } from '../approvals/cardLocation';
import { Button, Select, Status, TextField } from '../formControls';
import type { Choice } from '../formControls';
import { KernelSection } from '../kernelSection';
import type { PanelContext } from '../section';
import { Axis } from './axis';
import { CallLog, NO_FILTER, distinctValues, nestCalls, outcomeOf, outermost } from './callLog';
import type { CallRow, CallsReply, Filter, NestedCall } from './callLog';
import { toCsv, toJsonLines } from './export';
import { Timeline } from './timeline';
import { TotalsTable } from './totals';

/** While something runs its bar grows this often. */
const GROW_MS = 1_000;
/** A shorter wait is nobody's: cards leave it out too. */
const SHOWN_WAIT_MS = 500;

/** What is chosen from a list, and what of a call it is about. */
const CHOICES = {
  tool: ({ tool }: CallRow) => tool,
  state: outcomeOf,
  agent: ({ agent }: CallRow) => agent,
  session: ({ session }: CallRow) => session
};

export class CallsSection extends KernelSection<CallsReply> {
  private readonly logs = new Map<string, CallLog>();
  private filter: Filter = NO_FILTER;
  private hidesIdleTime = true;
  /** What became of the last call that was pressed. */
  private note = '';
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(context: PanelContext) {
    super(context, 'calls', trans.__('Calls'), ['calls', 'asks']);
  }

  /** Hidden, nothing grows. */
  protected onAfterShow(): void {
    this.update();
  }

  protected request(): PanelRequest {
    return { what: 'calls', since: this.log.since };
  }

  protected receive(reply: CallsReply): void {
    super.receive(reply);
    this.log.update(reply);
    const kernels = this.context.hub.kernels();
    [...this.logs.keys()].filter(known => !kernels.some(({ id }) => id === known)).forEach(id => this.logs.delete(id));
  }

  protected reset(): void {
    super.reset();
    this.filter = NO_FILTER;
    this.note = '';
  }

  protected renderReply(): ReactElement {
    const { log } = this;
    const now = Date.now() + log.skew;
    const all = [...log.calls.values()];
    if (!all.length) {
      return <p className="oc-panel-empty">{trans.__('No tool has been called in this notebook yet.')}</p>;
    }
    const values = {} as Record<keyof typeof CHOICES, string[]>;
    for (const field of Object.keys(CHOICES) as (keyof typeof CHOICES)[]) {
      values[field] = distinctValues(all, CHOICES[field]);
      // a choice that the list no longer has, such as "running", could not be taken back
      this.filter = values[field].includes(this.filter[field]) ? this.filter : { ...this.filter, [field]: '' };
    }
    const { filter } = this;
    const nested = nestCalls(all, filter);
    const calls = nested.map(({ call }) => call);
    clearTimeout(this.timer);
    if (this.isVisible && calls.some(({ end }) => end === null)) {
      this.timer = setTimeout(() => this.update(), GROW_MS);
    }
    const choose = (field: keyof Filter) => (value: string) => {
      this.filter = { ...this.filter, [field]: value };
      this.note = '';
      this.update();
    };
    const select = (field: keyof typeof CHOICES, label: string, first: string, text = (value: string): string => value): ReactElement => {
      const choices = values[field].map((value): Choice => [value, text(value)]);
      return <Select label={label} hideLabel value={filter[field]} choices={[['', first], ...choices]} onChange={choose(field)} />;
    };
    const toggleIdleTime = (): void => {
      this.hidesIdleTime = !this.hidesIdleTime;
      this.update();
    };
    return (
      <>
        <div className="oc-calls-filters">
          {select('tool', trans.__('Tool'), trans.__('all tools'))}
          {select('state', trans.__('State'), trans.__('all states'), outcomeWord)}
          {select('agent', trans.__('Agent'), trans.__('all agents'))}
          {select('session', trans.__('Session'), trans.__('all sessions'), id => log.sessions.get(id) || id)}
          <TextField type="search" label={trans.__('Filter by text')} hideLabel placeholder={trans.__('Filter by text')} key={this.kernel?.id} onChange={event => choose('text')(event.target.value.trim())} />
          <label className="oc-calls-fold">
            <input type="checkbox" defaultChecked={this.hidesIdleTime} onChange={toggleIdleTime} />
            {trans.__('hide idle time')}
          </label>
        </div>
        <Status className="oc-calls-said">{this.note || summary(nested, all.length)}</Status>
        <Timeline calls={nested} axis={new Axis(calls, now, this.hidesIdleTime)} now={now} onPress={call => void this.goTo(call)} />
        <TotalsTable calls={calls} now={now} />
        <div className="oc-calls-bar">
          <Button onClick={() => this.save('csv')}>{trans.__('Save CSV')}</Button>
          <Button onClick={() => this.save('jsonl')}>{trans.__('Save JSONL')}</Button>
        </div>
      </>
    );
  }

  /** The calls of the kernel that is shown, as far as they are known. */
  private get log(): CallLog {
    const id = this.kernel?.id ?? '';
    const log = this.logs.get(id) ?? new CallLog();
    this.logs.set(id, log);
    return log;
  }

  private async goTo(call: CallRow): Promise<void> {
    const { app, hub } = this.context;
    const kernel = hub.kernels().find(({ id }) => id === this.kernel?.id);
    const card = kernel && (await goToCard(app, kernel.document, call.id, outermost(call, this.log.calls).id));
    this.note = card ? '' : trans.__('The card of this call is no longer in the notebook.');
    this.update();
  }

  private save(kind: 'csv' | 'jsonl'): void {
    const { log } = this;
    const notebook = this.kernel?.name ?? '';
    const calls = nestCalls(log.calls.values(), this.filter).map(({ call }) => ({ call, notebook }));
    const text = (kind === 'csv' ? toCsv : toJsonLines)(calls, Date.now() + log.skew);
    saveBlob(new Blob([text]), `${notebook.replace(/\.ipynb$/, '') || 'calls'}-calls.${kind}`);
  }
}

/** How many calls are shown of how many, and how long they waited. */
function summary(calls: readonly NestedCall[], all: number): string {
  // the wait of a call is part of the wait of the one it was made in
  const waited = calls.reduce((sum, { call, depth }) => sum + (depth ? 0 : call.waited), 0);
  const count = trans._n('%1 call', '%1 calls', calls.length);
  const of = calls.length < all ? ` ${trans.__('of %1', all)}` : '';
  return count + of + (waited >= SHOWN_WAIT_MS ? trans.__(', waited %1 for approval', duration(waited)) : '');
}
