/** An open notebook as JSON that is small enough to send: outputs only where asked for, long ones cut. */

import type { CellJson } from './protocol';

/** Characters of one text in an output; more would not be shown whole by any reader. */
const TEXT_CHARS = 400_000;
/** Of one picture, as base64. */
const PICTURE_CHARS = 7_000_000;
/** Of all outputs together: servers cut the connection at messages of 10 MB. */
const TOTAL_CHARS = 8_000_000;

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Mime types that a reader shows; of others the name is enough. */
const TEXTS = ['text/plain', 'text/markdown', 'text/latex', 'text/html', 'image/svg+xml', 'application/json'];

type Bundle = Record<string, unknown>;
type Output = { output_type?: string; text?: unknown; data?: Bundle; traceback?: unknown } & Bundle;
/** How many characters may still be sent. */
type Room = { chars: number };

/** All cells; those from `first` on, `count` of them, with outputs to read, others with the form of theirs. */
export function cellsOf(cells: readonly CellJson[], first: number, count: number): CellJson[] {
  const room: Room = { chars: TOTAL_CHARS };
  return cells.map((cell, index) => {
    const requested = index >= first && index < first + count;
    const outputs = cell.outputs as Output[] | undefined;
    return outputs ? { ...cell, outputs: outputs.map(output => (requested ? trimmed(output, room) : emptied(output))) } : cell;
  });
}

/** An output of which only the form is looked at. */
function emptied(output: Output): Output {
  const { text, data, traceback } = output;
  return { ...output, ...(text !== undefined && { text: '' }), ...(data && { data: {} }), ...(traceback !== undefined && { traceback: [] }) };
}

function trimmed(output: Output, room: Room): Output {
  const made = { ...output };
  if (output.text !== undefined) {
    made.text = cut(output.text, room);
  }
  if (Array.isArray(output.traceback)) {
    made.traceback = output.traceback.map(line => cut(line, room));
  }
  if (output.data) {
    made.data = Object.fromEntries(Object.entries(output.data).map(([mime, value]) => [mime, bundled(mime, value, room)]));
  }
  return made;
}

function bundled(mime: string, value: unknown, room: Room): unknown {
  const isJson = mime.endsWith('json') || (typeof value === 'object' && !Array.isArray(value));
  if (!isJson && !PICTURES.includes(mime)) {
    return TEXTS.includes(mime) ? cut(value, room) : '';
  }
  // half a picture is none: what is not sent leaves its length
  const text = isJson ? (JSON.stringify(value) ?? '') : joined(value);
  const most = isJson ? (TEXTS.includes(mime) ? TEXT_CHARS : -1) : PICTURE_CHARS;
  if (text.length > Math.min(most, room.chars)) {
    return isJson ? {} : `?${text.length}`;
  }
  room.chars -= text.length;
  return isJson ? value : text;
}

function joined(value: unknown): string {
  return Array.isArray(value) ? value.join('') : typeof value === 'string' ? value : '';
}

/** A text without its middle, where there is too much of it. */
function cut(value: unknown, room: Room): string {
  const text = joined(value);
  const most = Math.max(0, Math.min(TEXT_CHARS, room.chars));
  room.chars -= Math.min(text.length, most);
  const half = Math.floor(most / 2);
  const gone = (text.length - 2 * half).toLocaleString('en-US');
  return text.length <= most ? text : `${text.slice(0, half)}\n… (${gone} characters not sent by JupyterLab)\n${text.slice(text.length - half)}`;
}
