/** One change of an open notebook's shared model, in one step that its undo takes back. */

import type { INotebookModel } from '@jupyterlab/notebook';

import type { CellJson, Change, Refusal } from './protocol';

/** An open notebook's shared model. */
export type SharedNotebook = INotebookModel['sharedModel'];
type SharedCell = SharedNotebook['cells'][number];
type Undoable = { undoManager?: { stopCapturing(): void } | null } | undefined;

/** Makes `change`, or says why it can't be made; then nothing is changed. */
export function applyChange(notebook: SharedNotebook, change: Change): Refusal | null {
  const { cells } = notebook;
  const at = cells.findIndex(cell => cell.id === change.id);
  const inserts = change.operation === 'insert';
  if (at < 0 !== inserts) {
    return inserts ? 'changed' : 'gone';
  }
  const cell = cells[at];
  const { expect } = change;
  if (expect && (cell.cell_type !== expect.type || cell.getSource() !== expect.source)) {
    return 'changed';
  }
  let to = 0;
  if (inserts || change.operation === 'move') {
    const rest = cells.filter(other => other !== cell);
    const after = change.after == null ? -1 : rest.findIndex(other => other.id === change.after);
    if (change.after != null && after < 0) {
      return 'neighbour';
    }
    to = after + 1;
  }
  // What a person typed just before and what they type next is undone apart from this.
  const separate = (): void => {
    for (const shared of [notebook, cell] as Undoable[]) {
      shared?.undoManager?.stopCapturing();
    }
  };
  separate();
  switch (change.operation) {
    case 'insert':
      notebook.transact(() => {
        notebook.insertCell(to, newCell(change) as never);
      });
      break;
    case 'delete':
      notebook.transact(() => {
        notebook.deleteCell(at);
      });
      break;
    case 'move':
      if (to !== at) {
        notebook.moveCell(at, to);
      }
      break;
    case 'replace':
      if (change.type === cell.cell_type) {
        setSource(cell, change.source ?? '');
      } else {
        notebook.transact(() => {
          const { metadata } = cell.toJSON() as CellJson;
          notebook.deleteCell(at);
          notebook.insertCell(at, { ...newCell(change), metadata: { ...metadata } } as never);
        });
      }
  }
  separate();
  return null;
}

function newCell(change: Change): CellJson {
  return { id: change.id, cell_type: change.type ?? 'code', source: change.source ?? '', metadata: {} };
}

/** Changes only what differs, so that the cursor and a selection elsewhere in the cell stay where they are. */
export function setSource(cell: SharedCell, source: string): void {
  const old = cell.getSource();
  const shorter = Math.min(old.length, source.length);
  let head = 0;
  while (head < shorter && old[head] === source[head]) {
    head++;
  }
  let tail = 0;
  while (tail < shorter - head && old[old.length - 1 - tail] === source[source.length - 1 - tail]) {
    tail++;
  }
  // never between the halves of a character
  if (head > 0 && isHigh(old.charCodeAt(head - 1))) {
    head--;
  }
  if (tail > 0 && isLow(old.charCodeAt(old.length - tail))) {
    tail--;
  }
  cell.updateSource(head, old.length - tail, source.slice(head, source.length - tail));
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
