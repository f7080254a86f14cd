/** What a kernel replies about its tools, and what of it a person looks for. */

import type { Action } from '../rules/messages';

/** What the rules decide about a call, and the rule that does. */
export interface Decided {
  action: Action;
  rule: string;
}

export interface ToolRow {
  name: string;
  source: string;
  kind: string;
  summary: string;
  user?: Decided;
  model?: Decided;
  /** Why it cannot be called; only of those that cannot. */
  reason?: string;
}

/** Answer to `tools`. */
export interface ToolsReply {
  tools: ToolRow[];
  missing: { name: string; source: string; reason: string }[];
}

/** The kind of the rows that cannot be called. */
export const MISSING = 'missing';

/** The tools, then those that cannot be called. */
export function toolRows(reply: ToolsReply): ToolRow[] {
  return [...reply.tools, ...reply.missing.map(tool => ({ ...tool, kind: MISSING, summary: '' }))];
}

/** Whether a row has every word of `text` somewhere, and is of `kind` ("" is every kind). */
export function matches(row: ToolRow, text: string, kind: string): boolean {
  if (kind && row.kind !== kind) {
    return false;
  }
  const all = `${row.name} ${row.source} ${row.summary} ${row.reason ?? ''}`.toLowerCase();
  return text.toLowerCase().split(/\s+/).every(word => all.includes(word));
}

/** The kinds there are, in the order in which they come. */
export function toolKinds(rows: readonly ToolRow[]): string[] {
  return [...new Set(rows.map(({ kind }) => kind))];
}
