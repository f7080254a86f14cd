/** Questions that were asked, with what came of them. */

import { trans } from '../i18n';
import { el } from '../dom';
import { visible, visibleLine } from '../format';
import type { CardAnswered } from '../types';

/** Draws `answered` into `host`, replacing what is there. */
export function drawAnswered(host: HTMLElement, answered: CardAnswered[]): void {
  const list = el('dl', 'oc-answered');
  for (const { questions, answers } of answered) {
    questions.forEach(({ question, header }, index) => {
      const term = el('dt');
      if (header) {
        term.append(el('span', 'oc-chip', visibleLine(header)), ' ');
      }
      term.append(visible(question));
      const chosen = answers?.[index] ?? [];
      const words = answers ? (chosen.length ? '' : trans.__('not answered')) : trans.__('dismissed');
      const answer = el('dd', words ? 'oc-none' : '', words);
      answer.append(...chosen.map(label => el('span', 'oc-said', visible(label))));
      list.append(term, answer);
    });
  }
  host.replaceChildren(list);
}
