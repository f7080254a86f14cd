/** Puts cells below the one whose output has a card: a call to be made again, or a model's code. The old cell is never run. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { documents, kernelOf } from '../kernel/requests';

const RUN = 'notebook:run-cell';

/** Whether cells can be put into the document: it is a notebook, and not one that is only read. */
export function takesCells(document: object): document is NotebookPanel {
  const { content } = document as Partial<NotebookPanel>;
  return !!content?.model?.sharedModel && typeof content.activeCellIndex === 'number' && !content.model.readOnly;
}

/** Puts a cell with `source` at `index`, makes it the active one, and runs it if `run`. */
export function insertCell(
  app: Pick<JupyterFrontEnd, 'shell' | 'commands'>,
  { id, content }: NotebookPanel,
  index: number,
  source: string,
  run: boolean
): void {
  content.model?.sharedModel.insertCell(index, { cell_type: 'code', source });
  app.shell.activateById(id);
  content.deselectAll();
  content.activeCellIndex = index;
  if (run) {
    void app.commands.execute(RUN);
  }
}

/** The notebook that takes cells, and in it the index of the cell, in which `card` stands. */
export function cellAround(app: JupyterFrontEnd, card: Element): { panel: NotebookPanel; index: number } | undefined {
  const panel = documents(app.shell).filter(takesCells).find(({ node }) => node.contains(card));
  const index = panel?.content.widgets.findIndex(({ node }) => node.contains(card)) ?? -1;
  return panel && index >= 0 ? { panel, index } : undefined;
}

/** Whether a call can be made again where `card` stands: in a notebook with a kernel. */
export function canRunAgain(app: JupyterFrontEnd, card: Element): boolean {
  return kernelOf(cellAround(app, card)?.panel) !== null;
}

/**
 * Puts a cell with `source` below the cell of `card`; `run`: and runs it. A card that the person does not trust may say
 * one thing and have another in its arguments, so there the cell is left for the person to read.
 */
export function insertBelow(app: JupyterFrontEnd, card: Element, source: string, run: boolean): void {
  const target = cellAround(app, card);
  if (target) {
    const { panel, index } = target;
    insertCell(app, panel, index + 1, source, run && panel.content.widgets[index].model.trusted);
  }
}
