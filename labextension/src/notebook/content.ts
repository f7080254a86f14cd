/** An open notebook as JSON that is small enough to send: outputs only where asked for, long ones cut. */

import type { CellJson } from './protocol';

/** Characters of one text in an output; more would not be shown whole by any reader. */
const TEXT_CHARS = 400_000;
/** Of one picture, as base64. */
const PICTURE_CHARS = 7_000_000;
/** Of all outputs together: servers cut the connection at messages of 10 MB. */
const TOTAL_CHARS = 8_000_000;
/** Characters of what is only looked at for its form. */
const FORM_CHARS = 200;

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Mime types that a reader shows; of others the name is enough. */
const TEXTS = ['text/plain', 'text/markdown', 'text/latex', 'text/html', 'image/svg+xml', 'application/json'];

type Bundle = Record<string, unknown>;
type Output = { output_type?: string; text?: unknown; data?: Bundle; traceback?: unknown } & Bundle;

/** All cells; those from `first` on, `count` of them, with outputs to read, others with the form of theirs. */
export function cellsOf(cells: readonly CellJson[], first: number, count: number): CellJson[] {
  const left = { chars: TOTAL_CHARS };
  return cells.map((cell, index) => {
    const wanted = index >= first && index < first + count;
    const outputs = cell.outputs as Output[] | undefined;
    return outputs ? { ...cell, outputs: outputs.map(output => trimmed(output, wanted, left)) } : cell;
  });
}

function trimmed(output: Output, wanted: boolean, left: { chars: number }): Output {
  const cut = (value: unknown, most: number): string => {
    const text = Array.isArray(value) ? value.join('') : typeof value === 'string' ? value : '';
    const room = Math.max(0, Math.min(wanted ? most : FORM_CHARS, left.chars));
    left.chars -= Math.min(text.length, room);
    if (text.length <= room) {
      return text;
    }
    const half = Math.floor(room / 2);
    const gone = `\n… (${(text.length - 2 * half).toLocaleString('en-US')} characters not sent by JupyterLab)\n`;
    return wanted ? text.slice(0, half) + gone + text.slice(text.length - half) : text.slice(0, room);
  };
  const made = { ...output };
  if (output.text !== undefined) {
    made.text = cut(output.text, TEXT_CHARS);
  }
  if (Array.isArray(output.traceback)) {
    made.traceback = output.traceback.slice(wanted ? 0 : -1).map(line => cut(line, TEXT_CHARS));
  }
  if (output.data) {
    made.data = {};
    for (const [mime, value] of Object.entries(output.data)) {
      made.data[mime] = bundled(mime, value, wanted, left, cut);
    }
  }
  return made;
}

function bundled(
  mime: string,
  value: unknown,
  wanted: boolean,
  left: { chars: number },
  cut: (value: unknown, most: number) => string
): unknown {
  if (PICTURES.includes(mime)) {
    // half a picture is none: what is not sent leaves its length
    const text = Array.isArray(value) ? value.join('') : String(value);
    if (wanted && text.length <= Math.min(PICTURE_CHARS, left.chars)) {
      left.chars -= text.length;
      return text;
    }
    return `?${text.length}`;
  }
  if (mime.endsWith('json') || typeof value === 'object') {
    const text = JSON.stringify(value) ?? '';
    if (TEXTS.includes(mime) && wanted && text.length <= Math.min(TEXT_CHARS, left.chars)) {
      left.chars -= text.length;
      return value;
    }
    return Array.isArray(value) && !mime.endsWith('json') ? cut(value, TEXT_CHARS) : {};
  }
  return TEXTS.includes(mime) ? cut(value, TEXT_CHARS) : '';
}
