/** The list of tools as the kernel tells it, and what of it a person looks for. */

export type Action = 'allow' | 'ask' | 'deny';

/** What a call would meet, and the rule that says so. */
export interface Judged {
  action: Action;
  rule: string;
}

export interface ToolRow {
  name: string;
  source: string;
  kind: string;
  summary: string;
  user?: Judged;
  model?: Judged;
  /** Why it can't be called; only of those that can't. */
  reason?: string;
}

/** Answer to `tools`. */
export interface ToolsReply {
  tools: ToolRow[];
  missing: { name: string; source: string; reason: string }[];
}

/** Of the rows that can't be called. */
export const MISSING = 'missing';

/** The tools, then those that can't be called. */
export function rowsOf(reply: ToolsReply): ToolRow[] {
  return [...reply.tools, ...reply.missing.map(tool => ({ ...tool, kind: MISSING, summary: '' }))];
}

/** Whether a row has every word of `text` somewhere, and is of `kind` ("" is every kind). */
export function fits(row: ToolRow, text: string, kind: string): boolean {
  if (kind && row.kind !== kind) {
    return false;
  }
  const all = `${row.name} ${row.source} ${row.summary} ${row.reason ?? ''}`.toLowerCase();
  return text.toLowerCase().split(/\s+/).every(word => all.includes(word));
}

/** The kinds there are, in the order in which they come. */
export function kindsOf(rows: readonly ToolRow[]): string[] {
  return [...new Set(rows.map(({ kind }) => kind))];
}
