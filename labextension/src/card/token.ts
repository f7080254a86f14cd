/**
 * The contract between the kernel and every drawing of a card: the JSON that Python writes
 * (`application/vnd.opencode.toolpart.v1+json` in a saved notebook, the `part` trait of a live card) and the
 * calls a card makes back. Python's side of it: `opencode_jupyter/jupyter/cards/wording.py`.
 */

/** The MIME type of a saved card; its version is the `v` of {@link CardPart}. */
export const CARD_MIME = 'application/vnd.opencode.toolpart.v1+json';

/** What a permission rule says to do with what it matches. */
export type Action = 'allow' | 'deny' | 'ask';

/** A person's answer, in OpenCode's words. */
export type Reply = 'once' | 'always' | 'reject';

/** How far an `always` reaches: this session, or the project's configuration file. */
export type Scope = 'session' | 'project';

/** How a call ended, where the state's own word does not tell enough. */
export type Outcome =
  | 'completed'
  | 'failed'
  | 'denied by a rule'
  | 'denied by you'
  /** Nobody was there to ask, and the policy for that case says no. */
  | 'denied by policy'
  /** A plugin's hook raised before the tool ran, or answered the ask with no. */
  | 'refused by a hook'
  /** The person did not want to answer a question. */
  | 'dismissed by you'
  /** Nobody was there to answer a question. */
  | 'unanswered'
  | 'stopped'
  | 'interrupted'
  | 'timed out'
  | 'invalid arguments'
  /** The kernel ended while the call waited for its first approval: nothing was run. */
  | 'cancelled'
  /** The kernel ended before the call did; how the call went is not known. */
  | 'ended';

/** One permission rule and the place it was written in. */
export interface CardRule {
  /** The permission it is about, maybe with wildcards: `edit`, `mcp_*`. */
  permission: string;
  /** The pattern it matches: a path, a command, `*`. */
  pattern: string;
  /** What it decides. */
  action: Action;
  /** Where it stands, for a person to find: `opencode.json`, `this notebook's default`, `this session`. */
  origin: string;
}

/** A question to the person: may this call do that? */
export interface CardAsk {
  /** The request's id; random, valid in one kernel process only. */
  id: string;
  /** Digest of what is asked; a reply carries it, so that a stale reply is noticed. */
  digest: string;
  /** The permission asked for: `edit`, `bash`, `external_directory`. */
  permission: string;
  /** What exactly is to be allowed now. */
  patterns: string[];
  /** What "for this session" would allow from then on; empty: that answer is not offered. */
  always: string[];
  /** The command in full, where the tool runs one. */
  command?: string;
  /** The unified diff in full, where the tool changes a file. */
  diff?: string;
  /** One diff for each file, where it changes several. */
  diffs?: CardDiff[];
  /** The file concerned, as a person writes it. */
  path?: string;
  /** The rule that said to ask. */
  rule?: CardRule;
  /** Where there are several patterns: the rule that decides each, in their order. */
  rules?: CardRule[];
  /** Whether a person may change the call's arguments. */
  editable?: boolean;
  /** The arguments whole, where the card's own are cut. */
  input?: Record<string, unknown>;
  /** When it was asked, in milliseconds since 1970 (the kernel's clock). */
  asked: number;
  /** Place among the asks that wait, counted from 1, and how many wait: `[2, 3]`. */
  position?: [number, number];
}

/** One answer to choose. */
export interface CardOption {
  label: string;
  /** What choosing it means; may be empty. */
  description: string;
}

/** One question to the person. */
export interface CardQuestion {
  /** The whole question. */
  question: string;
  /** A word or two for it; may be empty. */
  header: string;
  options: CardOption[];
  /** Whether several may be chosen. */
  multiple?: boolean;
  /** False: only the options are taken; absent: own words too. */
  custom?: boolean;
}

/** Questions that are asked together and wait for their answers. */
export interface CardQuestions {
  /** The request's id; valid in one kernel process only. */
  id: string;
  /** Digest of what is asked; an answer carries it, so that a stale one is noticed. */
  digest: string;
  questions: CardQuestion[];
  /** When it was asked, in milliseconds since 1970 (the kernel's clock). */
  asked: number;
  /** Place among all that waits, counted from 1, and how many wait. */
  position?: [number, number];
}

/** Questions that a call asked, and what came of them. */
export interface CardAnswered {
  questions: { question: string; header: string }[];
  /** For each question what was chosen or said; empty: not answered. Absent: dismissed. */
  answers?: string[][];
  /** Which way the answer came in. */
  by: string;
}

/** What a call did to one file. */
export interface CardDiff {
  /** The file, as a person writes it. */
  path: string;
  /** `add`, `update`, `move` or `delete`. */
  type: string;
  /** The unified diff. */
  diff: string;
  /** What a moved file was called. */
  from?: string;
  additions?: number;
  deletions?: number;
}

/** One task of a to-do list. */
export interface CardTask {
  content: string;
  status: 'pending' | 'in_progress' | 'completed' | 'cancelled';
  /** `high`, `medium`, `low`, or another word; may be empty. */
  priority: string;
}

/** Rows of a result, as text; names and values of an object where no column has a name. */
export interface CardTable {
  /** What kind of value it is: `DataFrame`, `dict`. */
  name?: string;
  columns: string[];
  /** The type of each column; empty: not known. */
  types?: string[];
  /** How many of the columns, from the first on, name the row. */
  index?: number;
  /** The first rows. */
  rows: string[][];
  /** How many there are in all. */
  total: number;
  /** How many columns there are in all, those that name the row left out. */
  width?: number;
}

/** A cell of a notebook that was read. */
export interface CardCell {
  /** Its place in the notebook, from 0. */
  index: number;
  id?: string;
  /** `code`, `markdown`, `raw`, or another word. */
  type: string;
  /** The number of its last run. */
  executed?: number;
  /** The line of the output, from 0, where its source begins. */
  line: number;
  /** Lines of its source. */
  source: number;
  /** Lines of its outputs' text, which follow one line after the source. */
  output: number;
  /** How many outputs it has. */
  outputs?: number;
}

/** A notebook that was read; what its cells hold stands in the call's output. */
export interface CardCells {
  cells: CardCell[];
  /** How many the notebook has. */
  total: number;
  /** What its code is written in; may be empty. */
  language: string;
  /** What there is to know of it, such as that it is open with unsaved changes. */
  notes: string[];
}

/** A permission decision that was taken for this call. */
export interface CardDecision {
  /** The permission that was asked for. */
  permission: string;
  /** The patterns it was asked for. */
  patterns: string[];
  /** What was decided. */
  action: 'allow' | 'deny';
  /** The person's answer, where a person (or a policy in their place) gave one. */
  reply?: Reply;
  /** Who decided: `you` (or the way a person's answer came in: `card`, `control`, `prompt`), `rule`, `policy`, … */
  by: string;
  /** The rule that decided, where one did. */
  rule?: CardRule;
  /** Where there are several patterns: the rule for each, in their order. */
  rules?: CardRule[];
  /** The person's word to the model. */
  message?: string;
  /** It was no answer: the person changed the call's arguments, and it asked anew. */
  revised?: boolean;
  /** What else came of it, such as the file that a rule was saved in. */
  note?: string;
}

/** How far the tool says it is. */
export interface CardProgress {
  /** Done so far, in the tool's own unit. */
  value: number;
  /** All there is to do, in the same unit; absent: not known. */
  total?: number;
  /** What it does now, one line. */
  message?: string;
}

/** The file that keeps the whole of an output that was cut. */
export interface CardSpill {
  /** Its absolute path on the kernel's machine. */
  path: string;
  /** Size of the whole, in bytes. */
  bytes: number;
  /** Lines of the whole; 0: not counted. */
  lines: number;
  /** The first line that is not shown, counted from 1. */
  line: number;
  /** Address under which the server hands it out, where there is one. */
  url?: string;
  /** The call whose output it is, as a person names it: `bash: npm test`; the card adds it. */
  title?: string;
  /** It is still being written. */
  writing?: boolean;
}

/** A file or picture that the tool returned. */
export interface CardAttachment {
  /** Its MIME type. */
  mime: string;
  /** A `data:` URL, or where it lies. */
  url: string;
  /** What to call it. */
  filename?: string;
}

/** The state of a tool call, as OpenCode's tool part has it. */
export interface CardState {
  status: 'pending' | 'running' | 'completed' | 'error';
  /** The arguments. */
  input: Record<string, unknown>;
  /** The arguments as a model wrote them so far, while `pending`. */
  raw?: string;
  /** The tool's own one-line title of the call. */
  title?: string;
  /** What the model sees. */
  output?: string;
  /** What went wrong. */
  error?: string;
  /** The tool's own data about the call. */
  metadata?: Record<string, unknown>;
  /** Start and end in milliseconds since 1970 (the kernel's clock). */
  time?: { start: number; end?: number };
  /** Files and pictures that came with the output. */
  attachments?: CardAttachment[];
}

/** What only the notebook's face of a call needs to know. */
export interface CardUi {
  /** What stands beside the tool's name: a path, a command, a pattern. */
  label: string;
  /** Who called: the person in a cell, or a model. */
  by: 'user' | 'model';
  /** The permission ask that waits for a person now. */
  ask?: CardAsk;
  /** The questions that wait for a person now; never together with `ask`. */
  question?: CardQuestions;
  /** The call has done nothing yet: it waits for the approval without which its tool does not begin. */
  untouched?: boolean;
  /** Milliseconds that this call has spent waiting for a person, the present wait left out. */
  waited: number;
  /** The end of the output so far; may hold ANSI escapes. */
  tail?: string;
  /** Lines of output so far. */
  lines?: number;
  /** Bytes of output so far. */
  bytes?: number;
  /** How far the tool is. */
  progress?: CardProgress;
  /** The file that another call changes first; this one waits for it. */
  waitsFor?: string;
  /** What was decided about this call, oldest first. */
  decisions: CardDecision[];
  /** How it ended. */
  outcome?: Outcome;
  /** Where the whole output is, if it was cut. */
  spill?: CardSpill;
  /** The unified diff of what was changed. */
  diff?: string;
  /** What was done to each of several files; then there is no `diff`. */
  diffs?: CardDiff[];
  /** Questions that this call asked. */
  answered?: CardAnswered[];
  /** A to-do list. */
  tasks?: CardTask[];
  /** The result's rows; the output says the same for the model. */
  table?: CardTable;
  /** The value that a tool returned or code displayed: each table or object of it. */
  tables?: CardTable[];
  /** What a person reads of the output: tables and pictures show the rest. Absent: all. */
  printed?: string;
  /** What the model was sent in the place of the error, where a person reads another text. */
  sent?: string;
  /** The cells of a notebook that was read. */
  cells?: CardCells;
  /** Names of files that belong to the result. */
  files?: string[];
  /** Lines of the output that a person is shown, first index and the one after the last; absent: all. */
  shown?: [number, number];
  /** The folder that relative paths of `table` and `diffs` are in, on the kernel's machine. */
  base?: string;
  /** The file that the label names, and the line (from 1) that the call is about. */
  opens?: { path: string; line?: number };
  /** Calls made inside this one (batch, task). */
  children?: CardPart[];
}

/** One tool call. */
export interface CardPart {
  /** Version of this contract. */
  v: 1;
  id: string;
  callID: string;
  sessionID: string;
  messageID: string;
  /** The tool's id. */
  tool: string;
  state: CardState;
  ui: CardUi;
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
  open?(spill: CardSpill): void;
  /** The person wants to see a file of the kernel's machine, at `line` from 1. */
  openFile?(path: string, line?: number): void;
  /** The page's own shortcuts for answers, as a person reads them; empty where it has none. */
  keys?(): { once?: string; session?: string; deny?: string };
  /** Something for the last line of a card whose call is over: what else a person can do with it. */
  more?(part: CardPart): HTMLElement;
}

/** A piece of live output, sent apart from the part so that a chatty tool stays cheap. */
export interface TailUpdate {
  /** The end of the output so far; may hold ANSI escapes. */
  text: string;
  /** Lines of output so far. */
  lines?: number;
  /** Bytes of output so far. */
  bytes?: number;
  /** How far the tool is, if that has changed. */
  progress?: CardProgress;
}
