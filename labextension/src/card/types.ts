/**
 * What a card is drawn from (the types that the build generates from `opencode_jupyter/jupyter/cards/contract.py`), and
 * the calls it makes back.
 */

import type { CardAsk, CardPart, CardQuestions, CardSpill, Reply } from './contract';

export * from './contract';

/** The MIME type of a saved card; its version is the `v` of {@link CardPart}. */
export const CARD_MIME = 'application/vnd.opencode.toolpart.v1+json';

/** How far an `always` reaches: this session, or the project's configuration file. */
export type Scope = 'session' | 'project';

/** A spilled output to open, with the call whose output it is as a person names it: `bash: npm test`. */
export interface SpillLink extends CardSpill {
  title?: string;
}

/** What may go with a person's answer. */
export interface ReplyOptions {
  /** The reason, sent to the model with `reject`. */
  message?: string;
  /** The patterns as the person left them, with `always`. */
  patterns?: string[];
  /** How far `always` reaches; `session` if left out. */
  scope?: Scope;
}

/** What a card calls. A card without callbacks has no buttons. */
export interface CardCallbacks {
  /** The person answered `ask`. */
  reply?(ask: CardAsk, reply: Reply, options: ReplyOptions): void;
  /** The person wants the call to run with other arguments; rejected with a message when they do not fit. */
  revise?(ask: CardAsk, input: Record<string, unknown>): Promise<void>;
  /** The person answered `asked`: for each question what was chosen or said. */
  answer?(asked: CardQuestions, answers: string[][]): void;
  /** The person does not want to answer `asked`. */
  dismiss?(asked: CardQuestions): void;
  /** The person wants the call `callID` stopped. */
  stop?(callID: string): void;
  /** The person wants to see the whole output; goes before the spill's URL. */
  open?(spill: SpillLink): void;
  /** The person wants to see a file of the kernel's machine, at `line` from 1. */
  openFile?(path: string, line?: number): void;
  /** The person wants to know what an error's code means and what to do. */
  explain?(code: string): void;
  /** The page's own shortcuts for answers, as a person reads them; empty where it has none. */
  keys?(): { once?: string; session?: string; deny?: string };
  /** Something for the last line of a card whose call is over: what else a person can do with it. */
  more?(part: CardPart): HTMLElement;
}
