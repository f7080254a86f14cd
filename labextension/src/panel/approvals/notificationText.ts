/** The text of an approval's notification. */

import { shorten, visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import type { Approval } from './approvalModel';

/** Longest text of a notification: JupyterLab cuts what is longer. */
const LONGEST = 140;

/** The text, and whether it holds all that would be allowed. */
export function notificationText({ name, card }: Approval): { text: string; whole: boolean } {
  const where = visibleLine(name);
  const ask = card?.ui.ask;
  if (!ask) {
    return { text: shorten(trans.__('%1: a question is waiting for your answer', where), LONGEST), whole: false };
  }
  const what = ask.command ?? ask.patterns.join(', ');
  const [tool, permission] = [visibleLine(card?.tool ?? ''), visibleLine(ask.permission)];
  const text =
    tool === permission
      ? trans.__('%1: %2 needs approval: %3', where, tool, visibleLine(what))
      : trans.__('%1: %2 needs approval for %3: %4', where, tool, permission, visibleLine(what));
  const plain = !ask.diff && !ask.diffs?.length && ask.patterns.length === 1 && !/[\n\r]/.test(what);
  return { text: shorten(text, LONGEST), whole: plain && ask.permission !== 'trust' && text.length <= LONGEST };
}
