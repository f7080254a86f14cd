/** Makes a call again: in a new cell below the one whose output has its card. The old cell is never run. */

import type { JupyterFrontEnd } from '@jupyterlab/application';

import { documents, kernelOf } from './kernel';
import type { KernelDocument } from './kernel';

const RUN = 'notebook:run-cell';

/** What is needed of a notebook's panel. */
interface Panel extends KernelDocument {
  id: string;
  content: {
    widgets: readonly { node: HTMLElement; model: { trusted?: boolean } }[];
    activeCellIndex: number;
    deselectAll(): void;
    model: { readOnly?: boolean; sharedModel: { insertCell(index: number, cell: { cell_type: 'code'; source: string }): unknown } } | null;
  };
}

/** Where a card stands. */
interface Spot {
  panel: Panel;
  index: number;
  /** Whether the person trusts what the cell shows. */
  trusted: boolean;
}

export class Again {
  constructor(private readonly app: JupyterFrontEnd) {}

  /** The cell of a notebook with a kernel that `card` stands in; nothing where a call can't be made. */
  place(card: Element): Spot | undefined {
    for (const document of documents(this.app.shell)) {
      const panel = document as Panel;
      if (document.node.contains(card) && panel.content?.model && !panel.content.model.readOnly && kernelOf(document)) {
        const index = panel.content.widgets.findIndex(({ node }) => node.contains(card));
        return index < 0 ? undefined : { panel, index, trusted: panel.content.widgets[index].model.trusted !== false };
      }
    }
    return undefined;
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
    const { content } = panel;
    content.model?.sharedModel.insertCell(index + 1, { cell_type: 'code', source });
    this.app.shell.activateById(panel.id);
    content.deselectAll();
    content.activeCellIndex = index + 1;
    if (trusted) {
      void this.app.commands.execute(RUN);
    }
  }
}
