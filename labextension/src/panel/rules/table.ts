/** The rules in the order in which they decide. */

import { button, el, hasFocus, show } from '../../card/dom';
import { visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import { badge } from '../tools/badge';
import type { RuleRow } from './messages';

export class RulesTable {
  readonly node = el('div', 'oc-rules-frame');
  private readonly body = el('tbody');
  private drawn = '';

  constructor(private readonly revoke: (rule: RuleRow) => void) {
    const table = el('table', 'oc-rules-table');
    const head = el('tr');
    for (const name of [trans.__('No.'), trans.__('Rule'), trans.__('Action')]) {
      const cell = el('th', '', name);
      cell.scope = 'col';
      head.append(cell);
    }
    const top = el('thead');
    top.append(head);
    table.append(top, this.body);
    this.node.append(table);
  }

  /** Draws the rules, unless they are drawn so already. */
  update(rules: readonly RuleRow[]): void {
    const json = JSON.stringify(rules);
    show(this.node, rules.length > 0);
    if (json === this.drawn) {
      return;
    }
    this.drawn = json;
    const focused = hasFocus(this.node);
    this.body.replaceChildren(...rules.map(rule => this.row(rule)));
    if (focused) {
      // what had the focus was revoked, or has another place
      const buttons = this.body.querySelectorAll('button');
      buttons[buttons.length - 1]?.focus();
    }
  }

  private row(rule: RuleRow): HTMLElement {
    const row = el('tr');
    const what = el('td', 'oc-rules-rule');
    const words = visibleLine(`${rule.permission} ${rule.pattern}`);
    const code = el('code');
    // broken where a part ends rather than inside a word
    words.split(/(?<=[_/])/).forEach((piece, at) => code.append(...(at ? [el('wbr')] : []), piece));
    what.append(code, el('span', 'oc-rules-origin', visibleLine(rule.origin)));
    if (rule.approval) {
      what.append(el('span', 'oc-rules-origin', trans.__('an approval: it does not override a rule that denies')));
    }
    if (rule.kind === 'session' || rule.kind === 'project') {
      const take = button(trans.__('Revoke'), '', 'oc-panel-button', () => this.revoke(rule));
      take.setAttribute('aria-label', trans.__('Revoke %1', `${words} ${rule.action}`));
      what.append(take);
    }
    const action = el('td');
    action.append(badge(rule.action, rule.action));
    row.append(el('td', 'oc-rules-n', String(rule.n)), what, action);
    return row;
  }
}
