/** Puts a new cell into a notebook, and runs it where that is wanted. */

import type { JupyterFrontEnd } from '@jupyterlab/application';

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
