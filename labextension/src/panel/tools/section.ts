/** The tab of tools: which there are and what a call of each would meet; one of them as a form. */

import { button, el, setText, show } from '../../card/dom';
import { visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import { KeyedRows, offer, searchField, select, statusLine, wordsOf } from '../controls';
import { Chooser } from '../kernelChooser';
import type { MakeSection, Surroundings } from '../section';
import { actionWords, badge } from './badge';
import { MISSING, fits, kindsOf, rowsOf } from './toolRows';
import type { Judged, ToolRow, ToolsReply } from './toolRows';
import { ToolForm } from './toolForm';
import type { ToolReply } from './toolForm';

const kindWords = (kind: string): string =>
  ({
    builtin: trans.__('built in'),
    cell: trans.__('cell'),
    file: trans.__('file'),
    package: trans.__('package'),
    mcp: trans.__('MCP server'),
    javascript: trans.__('JavaScript'),
    [MISSING]: trans.__('unavailable')
  })[kind] ?? kind;

class Row {
  readonly node = el('li');
  private drawn = '';

  constructor(
    readonly name: string,
    private readonly open: (name: string) => void
  ) {}

  update(row: ToolRow): void {
    const json = JSON.stringify(row);
    if (json === this.drawn) {
      return;
    }
    this.drawn = json;
    const focused = this.node.contains(document.activeElement);
    const inner = row.kind === MISSING ? el('div', 'oc-tools-row') : el('button', 'oc-tools-row');
    if (inner instanceof HTMLButtonElement) {
      inner.type = 'button';
      inner.addEventListener('click', () => this.open(this.name));
    }
    const source = row.kind === 'builtin' ? kindWords(row.kind) : `${kindWords(row.kind)}: ${row.source}`;
    const judged = el('span', 'oc-tools-judged');
    const addBadge = (who: string, judgement: Judged | undefined): void => {
      if (judgement) {
        judged.append(badge(judgement.action, `${who} ${actionWords(judgement.action)}`, visibleLine(judgement.rule)));
      }
    };
    addBadge(trans.__('you:'), row.user);
    addBadge(trans.__('model:'), row.model);
    inner.append(el('span', 'oc-tools-name', visibleLine(row.name)), judged, el('span', 'oc-tools-source', visibleLine(source)));
    const words = row.reason ?? row.summary;
    if (words) {
      inner.append(el('span', 'oc-tools-summary', visibleLine(words)));
    }
    this.node.replaceChildren(inner);
    if (focused) {
      this.focus();
    }
  }

  focus(): void {
    this.node.querySelector('button')?.focus();
  }
}

/** Tools of one name may be missing from several sources. */
const keyOf = ({ kind, source, name }: ToolRow): string => `${kind === MISSING ? source : ''}\0${name}`;

class ToolsSection {
  readonly node = el('div', 'oc-tools');
  private readonly chooser: Chooser;
  private readonly all = el('div');
  private readonly detail = el('div');
  private readonly text = searchField(trans.__('Filter by text'), () => this.filter());
  private readonly kind = select(trans.__('Source'), () => this.filter());
  private readonly status = statusLine();
  private readonly list = el('ul', 'oc-tools-list');
  private readonly rows = new KeyedRows<ToolRow, Row>(this.list, keyOf, ({ name }) => new Row(name, chosen => void this.open(chosen)));
  private found: ToolRow[] = [];
  private opened = '';
  private form?: ToolForm;
  private top = 0;

  constructor(private readonly around: Surroundings) {
    this.chooser = new Chooser(around.hub, () => {
      this.close();
      void this.update();
    });
    this.list.setAttribute('aria-label', trans.__('Tools'));
    const bar = el('div', 'oc-panel-bar');
    bar.append(this.text, this.kind);
    this.all.append(bar, this.status, this.list);
    this.node.append(this.chooser.node, this.all, this.detail);
    this.detail.hidden = true;
  }

  update(): Promise<boolean> {
    const draw = (reply: ToolsReply): void => {
      this.found = rowsOf(reply);
      this.draw();
    };
    return this.chooser.read<ToolsReply>(() => ({ what: 'tools' }), draw, () => {
      this.close();
      draw({ tools: [], missing: [] });
    });
  }

  focus(): void {
    this.text.focus();
  }

  private draw(): void {
    this.rows.update(this.found, (row, tool) => row.update(tool));
    const all: [string, string] = ['', trans.__('all sources')];
    offer(this.kind, [all, ...kindsOf(this.found).map((kind): [string, string] => [kind, kindWords(kind)])]);
    this.filter();
    show(this.all, this.found.length > 0 && !this.opened);
  }

  private filter(): void {
    let count = 0;
    for (const row of this.found) {
      const made = this.rows.get(keyOf(row));
      const on = fits(row, this.text.value, this.kind.value);
      count += Number(on);
      if (made) {
        show(made.node, on);
      }
    }
    const of = count < this.found.length ? ` ${trans.__('of %1', this.found.length)}` : '';
    setText(this.status, trans._n('%1 tool', '%1 tools', count) + of);
  }

  private async open(name: string): Promise<void> {
    const id = this.chooser.shown;
    const kernel = this.chooser.kernel();
    if (!kernel || kernel.id !== id) {
      return;
    }
    let tool: ToolReply;
    try {
      tool = await this.around.hub.request<ToolReply>(id, { what: 'tool', name });
    } catch (error) {
      this.chooser.report(wordsOf(error));
      return;
    }
    if (this.chooser.shown !== id) {
      return;
    }
    this.chooser.report('');
    const form = new ToolForm(this.around, () => this.around.hub.kernels().find(one => one.id === id), tool);
    const back = button(trans.__('All tools'), '', 'oc-panel-button oc-tools-back', () => this.close(true));
    const scroller = this.node.parentElement;
    this.top = scroller?.scrollTop ?? 0;
    this.opened = name;
    this.form = form;
    this.detail.replaceChildren(back, form.node);
    show(this.all, false);
    show(this.detail, true);
    form.attach();
    if (scroller) {
      scroller.scrollTop = 0;
    }
    form.title.focus();
  }

  private close(goBack = false): void {
    const name = this.opened;
    this.opened = '';
    this.form?.dispose();
    this.form = undefined;
    this.detail.replaceChildren();
    show(this.detail, false);
    show(this.all, this.found.length > 0);
    if (goBack && this.node.parentElement) {
      this.node.parentElement.scrollTop = this.top;
      this.rows.get(`\0${name}`)?.focus();
    }
  }
}

/** Makes the section. */
export const makeTools: MakeSection = around => {
  const section = new ToolsSection(around);
  return {
    id: 'tools',
    title: trans.__('Tools'),
    node: section.node,
    topics: ['tools', 'rules'],
    update: () => section.update(),
    focus: () => section.focus()
  };
};
