/** What a person can do with a call that is over: copy it as a line or as Python, and make it again. */

import { copyButton } from './copy';
import { button, el } from './dom';
import { shorten } from './format';
import type { CardPart } from './types';
import { trans } from './i18n';
import { pythonCall, toolLine } from './toolLine';

const BUTTON = 'oc-button oc-small';
/** Characters of a line that a tooltip shows. */
const LINE_CHARS = 300;

/** Makes calls again where a card stands. */
export interface Runner {
  /** Whether one can be made now. */
  canRun(): boolean;
  /** Puts `source` into a new cell below the card's and runs it. */
  run(source: string): void;
}

/** The fold with the buttons for `part`, which are made when it is opened. */
export function actions(part: CardPart, runner: Runner): HTMLElement {
  const fold = el('details', 'oc-more');
  const row = el('span', 'oc-buttons');
  fold.append(el('summary', '', trans.__('more')), row);
  // each time, since a kernel may have come or gone
  fold.addEventListener('toggle', () => row.replaceChildren(...(fold.open ? buttons(part, runner) : [])));
  return fold;
}

function buttons({ tool, state }: CardPart, runner: Runner): HTMLElement[] {
  const { input } = state;
  const made: HTMLElement[] = [];
  const copy = (label: string, text: string): void => void made.push(copyButton(label, label, BUTTON, () => text));
  try {
    const { command } = input;
    if (typeof command === 'string' && command) {
      copy(trans.__('Copy command'), command);
    }
    const line = toolLine(tool, input);
    if (line !== undefined) {
      copy(trans.__('Copy as %tool line'), line);
    }
    copy(trans.__('Copy as Python'), pythonCall(tool, input));
    if (line !== undefined && runner.canRun()) {
      const runAgain = button(trans.__('Run again'), '', BUTTON, () => runner.run(line));
      runAgain.title = trans.__('In a new cell below: %1', shorten(line, LINE_CHARS));
      made.push(runAgain);
    }
  } catch {
    // arguments nested too deeply to be written down
    made.push(el('span', '', trans.__('These arguments can’t be written as a line.')));
  }
  return made;
}
