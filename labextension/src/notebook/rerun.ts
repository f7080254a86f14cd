/** Puts cells below the one whose output has a card: a call to be made again, or a model's code. The old cell is never run. */

import type { JupyterFrontEnd } from '@jupyterlab/application';

import { documents, kernelOf } from '../kernel/requests';
import type { KernelDocument } from '../kernel/requests';
import { insertCell } from './insertCell';
import type { CellsPanel } from './insertCell';

/** What is needed of a notebook's panel. */
interface Panel extends KernelDocument {
  id: string;
  content: CellsPanel['content'] & { widgets: readonly { node: HTMLElement; model: { trusted?: boolean } }[] };
}

/** Where a card stands. */
interface Spot {
  panel: Panel;
  index: number;
  /** Whether the person trusts what the cell shows. */
  trusted: boolean;
}

export class Rerun {
  constructor(private readonly app: JupyterFrontEnd) {}

  /** The cell that `card` stands in; nothing outside a notebook that takes cells. */
  place(card: Element): Spot | undefined {
    for (const document of documents(this.app.shell)) {
      const panel = document as Panel;
      if (document.node.contains(card) && panel.content?.model && !panel.content.model.readOnly) {
        const index = panel.content.widgets.findIndex(({ node }) => node.contains(card));
        return index < 0 ? undefined : { panel, index, trusted: panel.content.widgets[index].model.trusted !== false };
      }
    }
    return undefined;
  }

  /** Whether a call can be made again where `card` stands: in a notebook with a kernel. */
  canRun(card: Element): boolean {
    return kernelOf(this.place(card)?.panel) !== undefined;
  }

  /** Puts a cell with `source` below the cell of `card`, for the person to read and run. */
  insert(card: Element, source: string): void {
    const spot = this.place(card);
    if (spot) {
      insertCell(this.app, spot.panel, spot.index + 1, source, false);
    }
  }

  /**
   * Puts a cell with `source` below the cell of `card`, and runs it. A card that the person does not trust may say one
   * thing and have another in its arguments, so there the cell is left for the person to read.
   */
  run(card: Element, source: string): void {
    const spot = this.place(card);
    if (!spot) {
      return;
    }
    const { panel, index, trusted } = spot;
    insertCell(this.app, panel, index + 1, source, trusted);
  }
}
