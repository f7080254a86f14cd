/**
 * JupyterLab's table of contents looks for headings in the HTML of every output, drawn or not, and cleans it all up for
 * that: a thousand cards would hold up the page for seconds while their notebook opens. The HTML of a card has no
 * headings, so a cell with nothing but cards has none.
 */

import type { Cell, ICodeCellModel } from '@jupyterlab/cells';

import { CARD_MIME } from '../card/types';
import { RUN_MIME } from '../run/types';

const handled = new WeakSet<object>();

/** Whether all the outputs are cards, of calls or of runs. */
function onlyCards({ outputs }: ICodeCellModel): boolean {
  const isCard = (_: unknown, at: number): boolean => [CARD_MIME, RUN_MIME].some(mime => mime in outputs.get(at).data);
  return outputs.length > 0 && Array.from({ length: outputs.length }, isCard).every(Boolean);
}

/** Has the class of code cells, of which `cells` may hold one, say at once that cards have no headings. */
export function skipCardHeadings(cells: readonly Cell[]): void {
  const cell = cells.find(({ model }) => model.type === 'code');
  let owner: unknown = cell && Object.getPrototypeOf(cell);
  while (owner && !Object.hasOwn(owner, 'getHeadings')) {
    owner = Object.getPrototypeOf(owner);
  }
  if (!owner || handled.has(owner)) {
    return;
  }
  handled.add(owner);
  const prototype = owner as Pick<Cell, 'getHeadings'>;
  const usual = prototype.getHeadings;
  prototype.getHeadings = function (this: Cell) {
    return this.model.type === 'code' && onlyCards(this.model as ICodeCellModel) ? Promise.resolve([]) : usual.call(this);
  };
}
