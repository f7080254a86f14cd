/** Puts cells below the one whose output has a card: a call to be made again, or a model's code. The old cell is never run. */

import type { JupyterFrontEnd } from '@jupyterlab/application';

import { documents, kernelOf } from '../kernel/requests';
import type { KernelDocument } from '../kernel/requests';

const RUN = 'notebook:run-cell';

/** What is needed of a notebook's panel. */
export interface CellsPanel {
  id: string;
  content: {
    activeCellIndex: number;
    deselectAll(): void;
    model: { readOnly?: boolean; sharedModel: { insertCell(index: number, cell: { cell_type: 'code'; source: string }): unknown } } | null;
  };
}

/** Whether cells can be put into the document: it is a notebook, and not one that is only read. */
export function takesCells(document: object): document is CellsPanel {
  const { content } = document as Partial<CellsPanel>;
  return !!content?.model?.sharedModel && typeof content.activeCellIndex === 'number' && !content.model.readOnly;
}

/** Puts a cell with `source` at `index`, makes it the active one, and runs it if `run`. */
export function insertCell(
  app: Pick<JupyterFrontEnd, 'shell' | 'commands'>,
  panel: CellsPanel,
  index: number,
  source: string,
  run: boolean
): void {
  const { content } = panel;
  content.model?.sharedModel.insertCell(index, { cell_type: 'code', source });
  app.shell.activateById(panel.id);
  content.deselectAll();
  content.activeCellIndex = index;
  if (run) {
    void app.commands.execute(RUN);
  }
}

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
