/**
 * JupyterLab's table of contents looks for headings in the HTML of every output, drawn or not, and cleans it all up for
 * that: a thousand cards would hold up the page for seconds while their notebook opens. The HTML of a card has no
 * headings, so a cell with nothing but cards has none.
 */

import { CARD_MIME } from '../card/token';
import { RUN_MIME } from '../run/token';

interface Outputs {
  length: number;
  get(index: number): { data: Record<string, unknown> };
}

/** What is needed of a cell's widget. */
export interface CellLike {
  model: { type: string; outputs?: Outputs };
  getHeadings?(): Promise<unknown[]>;
}

const done = new WeakSet<object>();

/** Whether all the outputs are cards, of calls or of runs. */
export function onlyCards(outputs: Outputs | undefined): boolean {
  for (let at = 0; at < (outputs?.length ?? 0); at++) {
    const data = outputs?.get(at).data ?? {};
    if (!(CARD_MIME in data || RUN_MIME in data)) {
      return false;
    }
  }
  return (outputs?.length ?? 0) > 0;
}

/** Has the class of code cells, of which `cells` may hold one, say at once that cards have no headings. */
export function skipCardHeadings(cells: readonly CellLike[]): void {
  const cell = cells.find(({ model }) => model.type === 'code');
  let owner: unknown = cell && Object.getPrototypeOf(cell);
  while (owner && !Object.hasOwn(owner, 'getHeadings')) {
    owner = Object.getPrototypeOf(owner);
  }
  if (!owner || done.has(owner)) {
    return;
  }
  done.add(owner);
  const prototype = owner as Required<Pick<CellLike, 'getHeadings'>>;
  const usual = prototype.getHeadings;
  prototype.getHeadings = function (this: CellLike) {
    return this.model.type === 'code' && onlyCards(this.model.outputs) ? Promise.resolve([]) : usual.call(this);
  };
}
