/** What a notification says of an ask. */

import { visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import type { Entry } from './approvalModel';

/** Longest text of a notification: JupyterLab cuts what is longer. */
const MOST = 140;

/** The text of an ask's notification, and whether it says all that would be allowed. */
export function words(entry: Entry): { text: string; whole: boolean } {
  const { card } = entry;
  const where = visibleLine(entry.name);
  const ask = card?.ui.ask;
  if (!ask) {
    return { text: cut(trans.__('%1: a question is waiting for your answer', where)), whole: false };
  }
  const what = ask.command ?? ask.patterns.join(', ');
  const [tool, permission] = [visibleLine(card?.tool ?? ''), visibleLine(ask.permission)];
  const text =
    tool === permission
      ? trans.__('%1: %2 needs approval: %3', where, tool, visibleLine(what))
      : trans.__('%1: %2 needs approval for %3: %4', where, tool, permission, visibleLine(what));
  const plain = !ask.diff && !ask.diffs?.length && ask.patterns.length === 1 && !/[\n\r]/.test(what);
  return { text: cut(text), whole: plain && ask.permission !== 'trust' && text.length <= MOST };
}

function cut(text: string): string {
  return text.length <= MOST ? text : `${text.slice(0, MOST - 1)}…`;
}
