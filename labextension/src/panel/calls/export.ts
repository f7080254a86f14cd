/** Calls as a file: one line of comma-separated values or of JSON for each. */

import type { CallRow } from './callLog';
import { outcomeOf, workedMs } from './callLog';

export const COLUMNS = [
  'notebook',
  'id',
  'parent',
  'session',
  'tool',
  'title',
  'state',
  'start',
  'end',
  'worked_ms',
  'waited_ms',
  'agent',
  'by'
] as const;

type Line = Record<(typeof COLUMNS)[number], string | number | null>;

/** A call with the name of its notebook. */
export interface ExportedCall {
  call: CallRow;
  notebook: string;
}

function exportLine({ call, notebook }: ExportedCall, now: number): Line {
  const { id, parent, session, tool, title, start, end, waited, agent, by } = call;
  return {
    notebook,
    id,
    parent: parent ?? null,
    session,
    tool,
    title,
    state: outcomeOf(call),
    start: new Date(start).toISOString(),
    end: end === null ? null : new Date(end).toISOString(),
    worked_ms: workedMs(call, now),
    waited_ms: waited,
    agent,
    by
  };
}

/** A field by RFC 4180. What a spreadsheet would take for a formula gets an apostrophe before it. */
export function csvField(value: string | number | null): string {
  let text = value === null ? '' : String(value);
  if (typeof value === 'string' && /^[=+\-@\t\r]/.test(text)) {
    text = `'${text}`;
  }
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/** All as CSV, with a line of names; lines end as RFC 4180 says. */
export function toCsv(calls: readonly ExportedCall[], now: number): string {
  const lines = calls.map(exported => {
    const fields = exportLine(exported, now);
    return COLUMNS.map(name => csvField(fields[name])).join(',');
  });
  return [COLUMNS.join(','), ...lines].map(text => `${text}\r\n`).join('');
}

/** All as JSON Lines. */
export function toJsonLines(calls: readonly ExportedCall[], now: number): string {
  return calls.map(exported => `${JSON.stringify(exportLine(exported, now))}\n`).join('');
}
