/** Numbers, times and invisible characters as a person reads them. */

import { trans } from './i18n';

const INVISIBLE =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;
const MISLEADING =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u061c\u2028-\u202e\u2066-\u2069]/g;

function escaped(character: string): string {
  const code = character.codePointAt(0) as number;
  const hex = code.toString(16);
  return code < 0x100
    ? `\\x${hex.padStart(2, '0')}`
    : code < 0x10000
      ? `\\u${hex.padStart(4, '0')}`
      : `\\u{${hex}}`;
}

/**
 * `text` with every character escaped that could hide or reorder something: controls, bidirectional marks,
 * zero-width and other unseen characters. For what a person judges by: requests, diffs, titles.
 */
export function visible(text: string): string {
  return text.replace(INVISIBLE, escaped);
}

/** The same in one line. */
export function visibleLine(text: string): string {
  return visible(text).replace(/\n/g, '⏎').replace(/\t/g, ' ');
}

/** Output text: only what could mislead the eye is escaped; joiners inside emoji and scripts stay. */
export function readable(text: string): string {
  return text.replace(MISLEADING, escaped);
}

/** What a terminal would leave of `text` when a line is written over itself after a carriage return. */
export function overwritten(text: string): string {
  if (!text.includes('\r')) {
    return text;
  }
  // line by line, since one expression for it all would take the square of a long line's length
  return text
    .replace(/(?<!\r)\r+\n/g, '\n')
    .split('\n')
    .map(line => (line.length > 1 ? line.slice(line.lastIndexOf('\r', line.length - 2) + 1) : line))
    .join('\n');
}

/** `text`, cut to at most `length` characters. */
export function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** An error's text for a person. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A running clock: `0:04`, `12:07`, `1:00:00`. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (n: number): string => String(n).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  const rest = two(seconds % 60);
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${rest}`;
}

/** How long something took: `2 ms`, `0.03 s`, `0.4 s`, `3.2 s`, `0:12`. */
export function duration(ms: number): string {
  const rounded = Math.max(0, Math.round(ms));
  if (rounded < 10) {
    return `${rounded} ms`;
  }
  if (rounded < 9950) {
    return `${(rounded / 1000).toFixed(rounded < 95 ? 2 : 1)} s`;
  }
  return clock(Math.max(10000, rounded));
}

/** A size: `812 B`, `18 KB`, `1.2 MB` (1024 bytes to the KB). */
export function size(bytes: number): string {
  let value = bytes;
  for (const unit of ['B', 'KB', 'MB', 'GB']) {
    if (value < 1023.5 || unit === 'GB') {
      return `${unit === 'B' || value >= 9.95 ? Math.round(value) : value.toFixed(1)} ${unit}`;
    }
    value /= 1024;
  }
  return '';
}

/** `214 lines, 18 KB`; what is not known is left out. */
export function extent(lines: number | undefined, bytes: number | undefined): string {
  return [lines ? lineCount(lines) : '', bytes ? size(bytes) : ''].filter(Boolean).join(', ');
}

/** `5,000`: a number as it is shown. */
export function grouped(n: number): string {
  return n.toLocaleString('en-US');
}

/** `1 line`, `214 lines`. */
export function lineCount(n: number): string {
  return trans._n('%2 line', '%2 lines', n, grouped(n));
}
