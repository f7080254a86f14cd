/** What a card shows of a call beside its text: one block for each kind there is, redrawn only when it changed. */

import { el, show } from '../dom';
import type { CardPart, CardUi } from '../types';
import { drawAnswered } from './answered';
import { cellsOf, drawCells } from './cells';
import { drawDiffs } from './diffs';
import { drawFiles } from './files';
import { drawPictures } from './pictures';
import { drawTables } from './table';
import { drawTasks } from './tasks';

interface Body {
  className: string;
  /** What it shows of a part; nothing hides it. */
  of(part: CardPart): unknown;
  /** Whether an empty list is worth showing. */
  empty?: boolean;
  draw(host: HTMLElement, shown: never): void;
}

const pick = <K extends keyof CardUi>(name: K) => (part: CardPart): CardUi[K] => part.ui[name];

const BODIES: Body[] = [
  { className: 'oc-block', of: pick('answered'), draw: drawAnswered as Body['draw'] },
  { className: 'oc-block', of: pick('tasks'), empty: true, draw: drawTasks as Body['draw'] },
  { className: 'oc-files', of: pick('diffs'), draw: drawDiffs as Body['draw'] },
  { className: '', of: ({ ui }) => ui.tables ?? (ui.table && [ui.table]), draw: drawTables as Body['draw'] },
  { className: 'oc-tabled', of: cellsOf, draw: drawCells as Body['draw'] },
  { className: 'oc-block', of: pick('files'), draw: drawFiles as Body['draw'] },
  { className: 'oc-pictures', of: part => part.state.attachments, draw: drawPictures as Body['draw'] }
];

/** The blocks of one card. */
export class BodiesView {
  readonly nodes = BODIES.map(({ className }) => el('div', className));
  private readonly drawn: unknown[] = [];

  /** Draws what `part` has. */
  update(part: CardPart): void {
    BODIES.forEach(({ of, empty, draw }, index) => {
      const shown = of(part);
      const on = Array.isArray(shown) ? shown.length > 0 || !!empty : shown !== undefined;
      show(this.nodes[index], on);
      // parts come as fresh JSON: compare what they say
      const content = on ? JSON.stringify(shown) : '';
      if (content !== (this.drawn[index] ?? '')) {
        this.drawn[index] = content;
        if (on) {
          draw(this.nodes[index], shown as never);
        }
      }
    });
  }
}

/** Whether a block says all that the output says, so that a person need not read it twice. */
export function repeatsOutput({ answered, tasks, table, cells, printed }: CardUi): boolean {
  return !!(answered?.length || tasks || table || cells || printed !== undefined);
}
