/** "What would happen if": a tool or permission and a command or pattern, answered with the rule that decides. */

import { el, setText, show } from '../../card/dom';
import { visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import { form, labelled, statusLine, wordsOf } from '../controls';
import { badge } from '../tools/badge';
import type { Action } from '../tools/toolRows';
import type { TestReply, TestRow } from './messages';

const verdict = (action: Action): string =>
  ({
    allow: trans.__('It would be allowed.'),
    ask: trans.__('It would need your approval.'),
    deny: trans.__('It would be denied.')
  })[action] ?? action;

/** A rule in one line. */
export function ruleWords({ permission, pattern, action, origin }: TestRow['rule']): string {
  return visibleLine(`${permission} ${pattern} ${action}${origin ? ` (${origin})` : ''}`);
}

export class Tester {
  readonly node: HTMLElement;
  private readonly name = el('input', 'oc-panel-input');
  private readonly text = el('input', 'oc-panel-input');
  private readonly answer = el('div', 'oc-rules-answer');
  private readonly status = statusLine();
  private readonly list = el('ul', 'oc-rules-decided');

  /**
   * @param known - the id of the list of known permissions and tools.
   * @param ask - asks the kernel.
   */
  constructor(
    known: string,
    private readonly ask: (name: string, text: string) => Promise<TestReply>
  ) {
    this.name.setAttribute('list', known);
    this.name.value = 'bash';
    this.text.placeholder = 'git push';
    this.text.spellcheck = this.name.spellcheck = false;
    this.answer.append(this.status, this.list);
    const fields = [labelled(trans.__('Tool or permission'), this.name), labelled(trans.__('Command, pattern or JSON arguments'), this.text)];
    this.node = form('oc-rules-test', fields, trans.__('Test'), () => void this.run());
    this.node.append(this.answer);
  }

  private async run(): Promise<void> {
    this.list.replaceChildren();
    try {
      const reply = await this.ask(this.name.value, this.text.value);
      const none = reply.rows.length ? '' : ` ${trans.__('No permission is needed.')}`;
      setText(this.status, [verdict(reply.verdict) + none, reply.note].filter(Boolean).join(' '));
      this.node.dataset.action = reply.verdict;
      for (const row of reply.rows) {
        const item = el('li');
        item.append(
          badge(row.action, row.action),
          el('span', 'oc-rules-what', visibleLine(` ${row.permission} ${row.pattern}`)),
          el('span', 'oc-rules-origin', trans.__('decided by: %1', ruleWords(row.rule)))
        );
        this.list.append(item);
      }
      show(this.list, reply.rows.length > 0);
    } catch (error) {
      delete this.node.dataset.action;
      setText(this.status, wordsOf(error));
    }
  }
}
