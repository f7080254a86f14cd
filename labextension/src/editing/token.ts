/**
 * What kernel and page say to each other about lines that are being typed; `opencode_jupyter/jupyter/editing.py` is the
 * other side. Positions of messages count code points.
 */

/** Wants to know what may stand at a place, what stands there, or all tools. */
export type EditingRequest =
  | { kind: 'complete' | 'help'; code: string; cursor_pos: number }
  | { kind: 'schemas'; revision?: number };

/** One suggestion. */
export interface Match {
  text: string;
  type: string;
}

export interface CompleteReply {
  matches?: Match[];
  start?: number;
  end?: number;
  /** Which schemas the kernel has now. */
  revision?: number;
  /** It took too long. */
  late?: boolean;
}

/** One parameter of a tool. */
export interface FieldInfo {
  name: string;
  /** In words. */
  type: string;
  required: boolean;
  description: string;
  /** The values that it may have, where they are known. */
  choices: unknown[];
  /** It takes several values. */
  list?: boolean;
  default?: unknown;
}

export interface ToolInfo {
  name: string;
  source: string;
  summary: string;
  /** In the order in which words without a name fill them. */
  fields: FieldInfo[];
  /** The rest of the line is the body as it stands. */
  raw?: boolean;
  /** The parameter that a cell's body fills. */
  body?: string | null;
}

/** All that a page keeps of a kernel's tools. */
export interface SchemasReply {
  revision: number;
  tools: ToolInfo[];
  /** Options of `%tool`: the name of their value, two blanks, what they do. */
  options: Record<string, string>;
  /** Options that are followed by a value. */
  valued: string[];
  /** The same of `%%agent`. */
  agent: Record<string, string>;
  agentValued: string[];
  modes: string[];
  /** What stands first behind `%tools`, `%permissions`, … */
  commands: Record<string, string[]>;
}

/** What the word at a place means. */
export interface HelpReply {
  found?: boolean;
  kind?: 'tool' | 'parameter' | 'option';
  name?: string;
  description?: string;
  start?: number;
  end?: number;
  source?: string;
  usage?: string;
  type?: string;
  required?: boolean;
  default?: unknown;
  choices?: unknown[];
}
