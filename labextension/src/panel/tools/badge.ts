/** What a call meets, as a word in a frame. */

import { el } from '../../card/dom';
import { trans } from '../../card/i18n';
import type { Action } from './toolRows';

/** An action in words, by its own name as in the rules. */
export const actionWords = (action: Action): string =>
  ({ allow: trans.__('runs'), ask: trans.__('asks'), deny: trans.__('denied') })[action] ?? action;

/** A word about what a call meets; the words tell it, the colour only repeats it. */
export function badge(action: Action, words: string, title = ''): HTMLElement {
  const node = el('span', 'oc-badge', words);
  node.dataset.action = action;
  node.title = title;
  return node;
}
