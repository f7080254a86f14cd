/** The tab of calls: what ran, when, how long and what it waited for; filtered, summed up, saved as a file. */

import { goTo } from '../approvals/cardLocation';
import { button, el, setText, show } from '../../card/dom';
import { duration, outcomeWord } from '../../card/format';
import { trans } from '../../card/i18n';
import { offer, searchField, select, statusLine } from '../controls';
import { Chooser } from '../kernelChooser';
import type { MakeSection, Section, Surroundings } from '../section';
import { Axis } from './axis';
import { saveBlob } from '../../viewer/download';
import { toCsv, toJsonLines } from './export';
import type { Named } from './export';
import { CallLog, NO_FILTER, outermost, nest, stateOf, values } from './callLog';
import type { CallRow, CallsReply, Filter } from './callLog';
import { Timeline } from './timeline';
import { TotalsTable } from './totals';

/** While something runs its bar grows this often. */
const GROW_MS = 1_000;

class CallsSection {
  readonly node = el('div', 'oc-calls');
  private readonly logs = new Map<string, CallLog>();
  private readonly chooser: Chooser;
  private readonly selects: Record<'tool' | 'state' | 'agent' | 'session', HTMLSelectElement>;
  private readonly text: HTMLInputElement;
  private readonly fold = el('input');
  private readonly status = statusLine('oc-calls-said');
  private readonly timeline = new Timeline(call => void this.go(call));
  private readonly totals = new TotalsTable();
  private readonly tools = el('div', 'oc-calls-bar');
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly around: Surroundings) {
    const draw = (): void => this.draw();
    this.chooser = new Chooser(around.hub, () => void this.update());
    this.selects = {
      tool: select(trans.__('Tool'), draw),
      state: select(trans.__('State'), draw),
      agent: select(trans.__('Agent'), draw),
      session: select(trans.__('Session'), draw)
    };
    this.text = searchField(trans.__('Filter by text'), draw);
    this.fold.type = 'checkbox';
    this.fold.checked = true;
    this.fold.addEventListener('change', draw);
    const fold = el('label', 'oc-calls-fold');
    fold.append(this.fold, ` ${trans.__('hide idle time')}`);
    const csv = button(trans.__('Save CSV'), '', 'oc-panel-button', () => this.save('csv'));
    const lines = button(trans.__('Save JSONL'), '', 'oc-panel-button', () => this.save('jsonl'));
    const filters = el('div', 'oc-calls-filters');
    filters.append(...Object.values(this.selects), this.text, fold);
    this.tools.append(csv, lines);
    this.node.append(this.chooser.node, filters, this.status, this.timeline.node, this.totals.node, this.tools);
  }

  /** Reads what is new in the chosen kernel. */
  update(): Promise<boolean> {
    const id = this.chooser.kernel()?.id ?? '';
    const kernels = this.around.hub.kernels();
    for (const known of this.logs.keys()) {
      if (!kernels.some(kernel => kernel.id === known)) {
        this.logs.delete(known);
      }
    }
    const log = this.logs.get(id) ?? new CallLog();
    this.logs.set(id, log);
    const take = (reply: CallsReply): void => {
      log.update(reply);
      this.draw();
    };
    return this.chooser.read(() => ({ what: 'calls', since: log.since }), take, () => this.draw());
  }

  private get log(): CallLog {
    return this.logs.get(this.chooser.shown) ?? new CallLog();
  }

  private get filter(): Filter {
    const chosen = Object.entries(this.selects).map(([name, { value }]) => [name, value]);
    return { ...NO_FILTER, ...Object.fromEntries(chosen), text: this.text.value.trim() };
  }

  private draw(): void {
    const { log } = this;
    const now = Date.now() + log.skew;
    const all = [...log.calls.values()];
    const fill = (select: HTMLSelectElement, first: string, of: (call: CallRow) => string, label = (value: string): string => value): void =>
      offer(select, [['', first], ...values(all, of).map((value): [string, string] => [value, label(value)])]);
    fill(this.selects.tool, trans.__('all tools'), ({ tool }) => tool);
    fill(this.selects.state, trans.__('all states'), stateOf, outcomeWord);
    fill(this.selects.agent, trans.__('all agents'), ({ agent }) => agent);
    fill(this.selects.session, trans.__('all sessions'), ({ session }) => session, id => log.sessions.get(id) || id);
    const placed = nest(all, this.filter);
    const calls = placed.map(({ call }) => call);
    this.timeline.update(placed, new Axis(calls, now, this.fold.checked), now);
    this.totals.update(calls, now);
    for (const node of [this.status, this.timeline.node, this.totals.node, this.tools]) {
      show(node, all.length > 0);
    }
    // the wait of a call is part of the wait of the one it was made in
    const waited = placed.reduce((sum, { call, depth }) => sum + (depth ? 0 : call.waited), 0);
    const words = trans._n('%1 call', '%1 calls', calls.length);
    const of = calls.length < all.length ? ` ${trans.__('of %1', all.length)}` : '';
    setText(this.status, words + of + (waited ? trans.__(', waited %1 for approval', duration(waited)) : ''));
    if (!all.length && this.chooser.shown) {
      this.chooser.report(trans.__('No tool has been called in this notebook yet.'));
    }
    clearTimeout(this.timer);
    if (calls.some(call => call.end === null) && this.node.isConnected && !this.node.hidden) {
      this.timer = setTimeout(() => this.draw(), GROW_MS);
    }
  }

  private async go(call: CallRow): Promise<void> {
    const kernel = this.around.hub.kernels().find(({ id }) => id === this.chooser.shown);
    const card = kernel && (await goTo(this.around.app, kernel.document, call.id, outermost(call, this.log.calls).id));
    if (!card) {
      setText(this.status, trans.__('The card of this call is no longer in the notebook.'));
    }
  }

  private save(kind: 'csv' | 'jsonl'): void {
    const { log } = this;
    const now = Date.now() + log.skew;
    const notebook = this.around.hub.kernels().find(({ id }) => id === this.chooser.shown)?.name ?? '';
    const calls = nest(log.calls.values(), this.filter).map(({ call }): Named => ({ call, notebook }));
    const name = `${notebook.replace(/\.ipynb$/, '') || 'calls'}-calls.${kind}`;
    saveBlob(new Blob([kind === 'csv' ? toCsv(calls, now) : toJsonLines(calls, now)]), name);
  }
}

/** Makes the section. */
export const makeCalls: MakeSection = (around: Surroundings): Section => {
  const section = new CallsSection(around);
  return { id: 'calls', title: trans.__('Calls'), node: section.node, topics: ['calls', 'asks'], update: () => section.update() };
};
