/**
 * What kernel and page say to each other about open notebooks; `opencode_jupyter/jupyter/kernel/open_notebooks.py` is the
 * other side and tells the order of the messages.
 */

/** The kind of all these messages. */
export const KIND = 'notebook';

/** On IOPub: there is a job to take; for one page, or for all where `page` is empty. */
export interface Offer {
  kind: typeof KIND;
  /** Empty: none, the kernel only wants to hear who is there. */
  id: string;
  page?: string;
}

/** A page takes a job, or says what came of it. */
export interface JobMessage {
  kind: typeof KIND;
  step: 'take' | 'done';
  id: string;
  page: string;
  answer?: Answer;
}

/** The kernel's reply to a `take`; without a job when it was given up or is another page's. */
export interface TakeReply {
  job?: Job;
}

/** Which documents are open; `name` is the last part of the path that is looked for. */
export interface FindJob {
  op: 'find';
  name: string;
}

/** What a document holds. */
export interface ReadJob {
  op: 'read';
  page: string;
  document: string;
  /** Outputs are wanted of `count` cells from `first` on. */
  first: number;
  count: number;
}

/** Change one cell of a document. */
export interface ChangeJob {
  op: 'change';
  page: string;
  document: string;
  change: Change;
}

export type Job = FindJob | ReadJob | ChangeJob;

export interface Change {
  operation: 'replace' | 'insert' | 'delete' | 'move';
  /** The cell; for `insert` the id of the new one. */
  id: string;
  /** What the cell must still be. */
  expect?: { type: string; source: string };
  /** The id of the cell it goes after; null: to the start (insert, move). */
  after?: string | null;
  /** What it becomes (replace, insert). */
  type?: string;
  source?: string;
}

/** One open document. */
export interface DocumentInfo {
  page: string;
  document: string;
  /** Its path below the server's root. */
  path: string;
  /** The server's root folder, `~` for the home folder; empty where the page does not know it (Notebook 7). */
  root: string;
  /** Its kernel is the one that asks. */
  own: boolean;
  dirty: boolean;
  /** Its content is shared with other pages that have it open. */
  shared: boolean;
  /** It is open as plain text. */
  text: boolean;
}

/** Why a job was not done. Nothing was changed, but for `lost`: then nobody knows. */
export type Refusal = 'closed' | 'changed' | 'gone' | 'neighbour' | 'read-only' | 'lost';

export interface Answer {
  documents?: DocumentInfo[];
  head?: Record<string, unknown>;
  cells?: CellJson[];
  dirty?: boolean;
  error?: Refusal | string;
}

/** A cell as in a notebook's file; outputs only of those that were asked for. */
export interface CellJson {
  id?: string;
  cell_type: string;
  source: string | string[];
  metadata?: Record<string, unknown>;
  execution_count?: number | null;
  outputs?: unknown[];
}
