/**
 * What kernel and page say to each other about lines that are being typed; `opencode_jupyter/jupyter/magics/editor_requests.py` is the
 * other side. Positions of messages count code points.
 */

/** Requests what may stand at a place, or what stands there. */
export interface EditingRequest {
  kind: 'complete' | 'help';
  code: string;
  cursor_pos: number;
}

/** One suggestion. */
export interface Match {
  text: string;
  type: string;
  help?: HelpReply;
}

export interface CompleteReply {
  matches?: Match[];
  start?: number;
  end?: number;
  /** It took too long. */
  late?: boolean;
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
