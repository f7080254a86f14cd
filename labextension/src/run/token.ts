/**
 * The contract between the kernel and every drawing of a run: `application/vnd.opencode.run.v1+json` in a saved notebook,
 * the `run` trait of a live one, and the messages that bring it up to date. Python's side of it:
 * `opencode_jupyter/jupyter/cards/run_json.py` and `card.py` there.
 */

import type { CardPart, TailUpdate } from '../card/token';

/** The MIME type of a saved run; its version is the `v` of {@link RunPart}. */
export const RUN_MIME = 'application/vnd.opencode.run.v1+json';

export type RunStatus = 'waiting' | 'working' | 'retrying' | 'compacting' | 'done' | 'rejected' | 'stopped' | 'failed';

/** Words: of the model, its thoughts, a summary of the conversation, or a line of ours. */
export interface WordsItem {
  kind: 'text' | 'reasoning' | 'summary' | 'note';
  id: string;
  text: string;
  /** It grows no more. */
  done?: boolean;
}

/** A tool call, without the calls inside it. */
export interface CallItem {
  kind: 'call';
  /** The call's id. */
  id: string;
  /** The id of the call inside which it was made (task, batch). */
  parent?: string;
  part: CardPart;
}

/** What was there and was taken back: a stream broke off and is asked for anew. */
export interface GoneItem {
  kind: 'gone';
  id: string;
}

export type RunItem = WordsItem | CallItem | GoneItem;

/** A run without its items. */
export interface RunHead {
  /** Version of this contract. */
  v: 1;
  id: string;
  sessionID: string;
  /** The session's title. */
  title?: string;
  agent: string;
  /** `provider:model`. */
  model: string;
  /** The session's permission mode, if it is not the usual one. */
  mode?: string;
  status: RunStatus;
  /** How a stopped run ended: `stopped`, `interrupted`, or `ended` with its kernel. */
  outcome?: string;
  /** How many times the model was asked. */
  step: number;
  /** Tokens of all requests. */
  tokens: number;
  /** US dollars; absent: not known. */
  cost?: number;
  /** When it began and ended, in milliseconds since 1970 (the kernel's clock). */
  started: number;
  ended?: number;
  /** Milliseconds that its calls waited for a person. */
  waited?: number;
  /** It waits to ask the model again; `next` is when, in milliseconds since 1970. */
  retry?: { attempt: number; message: string; next: number };
  /** What is to be said at the end. */
  end?: { tone: 'err' | 'ask' | 'off'; text: string; advice?: string };
}

/** One run, as a whole. */
export interface RunPart extends RunHead {
  items: RunItem[];
}

/** What has changed. */
export interface RunUpdate {
  kind: 'run';
  head: RunHead;
  /** Items, new or changed, by their place. */
  items?: [number, RunItem][];
  /** Place of a text, its length before, and what it grew by. */
  deltas?: [number, number, string][];
  /** Place of a running call, and the new end of its output. */
  tails?: [number, TailUpdate][];
}

/** The whole, for a page that may have missed something. */
export interface RunWhole {
  kind: 'whole';
  run: RunPart;
}
