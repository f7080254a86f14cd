/** Terminal output as DOM: SGR colours become spans, every other escape sequence is dropped. */

import { el } from './dom';
import { overwritten, readable } from './format';

/** The style that is on at some place of the text. */
interface Style {
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

/** What the codes without a colour of their own change. */
const CODES: Record<number, Style> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { fg: undefined },
  49: { bg: undefined }
};

function apply(style: Style, parameters: string): Style {
  // 38:2::r:g:b has an empty colour space between the 2 and the red
  const codes = parameters.replace(/([34]8:2):\d*:(?=\d+:\d+:\d+)/g, '$1:').split(/[;:]/).map(Number);
  let next = { ...style };
  for (let i = 0; i < codes.length; ) {
    const code = codes[i++];
    const [tens, ones] = [Math.floor(code / 10), code % 10];
    const ground = tens === 3 || tens === 9 ? 'fg' : tens === 4 || tens === 10 ? 'bg' : undefined;
    if (code === 0) {
      next = {};
    } else if (code === 38 || code === 48) {
      [next[ground as 'fg' | 'bg'], i] = extended(codes, i);
    } else if (ground && ones < 8) {
      next[ground] = indexed(tens > 8 ? ones + 8 : ones);
    } else {
      Object.assign(next, CODES[code]);
    }
  }
  return next;
}

/** A stretch as a node. */
function piece({ text, style }: Run): Node {
  const { bold, dim, italic, underline, strike, inverse } = style;
  const look = {
    color: inverse ? (style.bg ?? 'var(--oc-bg)') : style.fg,
    backgroundColor: inverse ? (style.fg ?? 'var(--oc-fg)') : style.bg,
    fontWeight: bold && '600',
    opacity: dim && '0.7',
    fontStyle: italic && 'italic',
    textDecoration: [underline && 'underline', strike && 'line-through'].filter(Boolean).join(' ')
  };
  const shown = Object.entries(look).filter(([, value]) => value);
  if (!shown.length) {
    return document.createTextNode(text);
  }
  const span = el('span', '', text);
  Object.assign(span.style, Object.fromEntries(shown));
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
