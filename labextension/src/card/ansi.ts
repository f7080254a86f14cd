/** Terminal output as DOM: SGR colours become spans, every other escape sequence is dropped. */

import { overwritten, readable } from './format';

/** The style that is on at some place of the text. */
export interface Style {
  fg?: string;
  bg?: string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  strike?: boolean;
  inverse?: boolean;
}

const LEVELS = [0, 95, 135, 175, 215, 255];
/**
 * CSI (first group: its parameters, second: its final byte), OSC and other strings, two-byte escapes, a cut-off tail. A
 * string that has no end is taken all the same: its end would else be looked for from every other beginning in it.
 */
const ESCAPE =
  // eslint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)([0-?]*)[ -/]*([@-~])|(?:\u001b[\]PX^_]|[\u0090\u009d])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-Z\\^-~]|\u001b\[?[0-?]*[ -/]*$|\u001b/g;

/** The CSS colour number `index` of the 256: the first 16 follow the theme. */
function indexed(index: number): string | undefined {
  if (!(index >= 0 && index < 256)) {
    return undefined;
  }
  if (index < 16) {
    // the bright eight are the plain eight, but for the greys: on a page both must be readable
    return index === 8 ? 'var(--oc-dim)' : index === 15 ? 'var(--oc-fg)' : `var(--oc-ansi-${index % 8})`;
  }
  if (index > 231) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey},${grey},${grey})`;
  }
  const cube = index - 16;
  return `rgb(${LEVELS[Math.floor(cube / 36)]},${LEVELS[Math.floor(cube / 6) % 6]},${LEVELS[cube % 6]})`;
}

/** Reads the colour after a 38 or 48 at `at`; gives it and where to go on. */
function extended(codes: number[], at: number): [string | undefined, number] {
  if (codes[at] === 5) {
    return [indexed(codes[at + 1]), at + 2];
  }
  if (codes[at] === 2) {
    const rgb = codes.slice(at + 1, at + 4);
    const good = rgb.length === 3 && rgb.every(c => c >= 0 && c < 256);
    return [good ? `rgb(${rgb.join(',')})` : undefined, at + 4];
  }
  return [undefined, codes.length];
}

function apply(style: Style, parameters: string): Style {
  // 38:2::r:g:b has an empty colour space between the 2 and the red
  const codes = parameters.replace(/([34]8:2):\d*:(?=\d+:\d+:\d+)/g, '$1:').split(/[;:]/).map(Number);
  let next = { ...style };
  for (let i = 0; i < codes.length; ) {
    const code = codes[i++];
    if (code === 0) {
      next = {};
    } else if (code === 1) {
      next.bold = true;
    } else if (code === 2) {
      next.dim = true;
    } else if (code === 3) {
      next.italic = true;
    } else if (code === 4) {
      next.underline = true;
    } else if (code === 7) {
      next.inverse = true;
    } else if (code === 9) {
      next.strike = true;
    } else if (code === 22) {
      next.bold = next.dim = false;
    } else if (code === 23) {
      next.italic = false;
    } else if (code === 24) {
      next.underline = false;
    } else if (code === 27) {
      next.inverse = false;
    } else if (code === 29) {
      next.strike = false;
    } else if ((code >= 30 && code < 38) || (code >= 90 && code < 98)) {
      next.fg = indexed(code < 38 ? code - 30 : code - 82);
    } else if ((code >= 40 && code < 48) || (code >= 100 && code < 108)) {
      next.bg = indexed(code < 48 ? code - 40 : code - 92);
    } else if (code === 38) {
      [next.fg, i] = extended(codes, i);
    } else if (code === 48) {
      [next.bg, i] = extended(codes, i);
    } else if (code === 39) {
      next.fg = undefined;
    } else if (code === 49) {
      next.bg = undefined;
    }
  }
  return next;
}

/** A stretch as a node. */
function piece({ text: clean, style }: Run): Node {
  const { bold, dim, italic, underline, strike, inverse } = style;
  const fg = inverse ? (style.bg ?? 'var(--oc-bg)') : style.fg;
  const bg = inverse ? (style.fg ?? 'var(--oc-fg)') : style.bg;
  if (!(fg || bg || bold || dim || italic || underline || strike)) {
    return document.createTextNode(clean);
  }
  const span = document.createElement('span');
  span.textContent = clean;
  const css = span.style;
  if (fg) {
    css.setProperty('color', fg);
  }
  if (bg) {
    css.setProperty('background-color', bg);
  }
  if (bold) {
    css.setProperty('font-weight', '600');
  }
  if (dim) {
    css.setProperty('opacity', '0.7');
  }
  if (italic) {
    css.setProperty('font-style', 'italic');
  }
  if (underline || strike) {
    css.setProperty('text-decoration', underline ? (strike ? 'underline line-through' : 'underline') : 'line-through');
  }
  return span;
}

/** A stretch of the text in one style. */
interface Run {
  text: string;
  style: Style;
}

/** `text`, begun in `style`, as a terminal would leave it; and the style that is on at its end. */
function styled(text: string, style: Style): [Run[], Style] {
  const source = overwritten(text);
  const runs: Run[] = [];
  let from = 0;
  const add = (to: number): void => {
    if (to > from) {
      runs.push({ text: readable(source.slice(from, to)), style });
    }
  };
  for (const match of source.matchAll(ESCAPE)) {
    add(match.index);
    if (match[2] === 'm') {
      style = apply(style, match[1]);
    }
    from = match.index + match[0].length;
  }
  add(source.length);
  return [runs, style];
}

/** Draws `text` into `host` as a terminal would leave it, replacing what is there. */
export function drawOutput(host: HTMLElement, text: string): void {
  host.replaceChildren(...styled(text, {})[0].map(piece));
}

/** Lines that follow each other, each as nodes: a colour stays on until it is ended. `before` sets the first ones. */
export function ansiLines(lines: string[], before = ''): Node[][] {
  let [runs, style] = styled(before, {});
  return lines.map(line => {
    [runs, style] = styled(line, style);
    return runs.map(piece);
  });
}

/** `text` without colours, as it is shown. */
export function ansiText(text: string): string {
  return styled(text, {})[0]
    .map(run => run.text)
    .join('');
}
