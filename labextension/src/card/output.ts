/** What a tool wrote, with its colours, however long it is. */

import { ansiRuns, piece } from './ansi';
import type { Run } from './ansi';
import { drawLong } from './long';
import type { Piece, Place } from './long';

/** A piece of a long output has at most this many lines, characters, and changes of style. */
const LINES = 60;
const CHARACTERS = 6_000;
const RUNS = 400;

/** Draws `text`, which may hold ANSI escapes, into `host`, replacing what is there. */
export function drawOutput(host: HTMLElement, text: string): void {
  drawLong(host, outputPieces(text));
}

/** The pieces of an output: cut at lines' ends, and inside of lines that are longer than a piece. */
export function outputPieces(text: string): Piece[] {
  const pieces: Piece[] = [];
  let runs: Run[] = [];
  let lines = 1;
  let characters = 0;
  const cut = (open: boolean): void => {
    pieces.push(outputPiece(runs, lines, characters, open));
    runs = [];
    lines = 1;
    characters = 0;
  };
  for (const { text: whole, style } of ansiRuns(text)) {
    let from = 0;
    while (from < whole.length) {
      const end = whole.indexOf('\n', from);
      let to = end < 0 ? whole.length : end;
      const room = CHARACTERS - characters;
      if (to - from > room) {
        to = from + room;
        // not between the halves of one character
        to += /[\ud800-\udbff]/.test(whole[to - 1]) ? 1 : 0;
        add(whole.slice(from, to), style);
        cut(true);
        from = to;
      } else {
        add(whole.slice(from, to), style);
        from = to;
        if (to === end) {
          from++;
          if (lines >= LINES || runs.length > RUNS) {
            cut(false);
          } else {
            add('\n', style);
            lines++;
          }
        }
      }
    }
    if (runs.length > RUNS) {
      cut(true);
    }
  }
  if (runs.length || !pieces.length) {
    cut(false);
  }
  return pieces;

  function add(more: string, style: Run['style']): void {
    const last = runs[runs.length - 1];
    characters += more.length;
    if (last?.style === style) {
      last.text += more;
    } else if (more) {
      runs.push({ text: more, style });
    }
  }
}

function outputPiece(runs: Run[], lines: number, characters: number, open: boolean): Piece {
  return {
    lines,
    characters,
    open,
    fill: () => runs.map(piece),
    text: (from, to) => {
      const whole = runs.map(run => run.text).join('');
      return whole.slice(from ? offset(from) : 0, to ? offset(to) : undefined);
    }
  };
}

/** How many characters of the piece stand before a place in it. */
function offset([node, at]: Place): number {
  const range = document.createRange();
  const piece = (node instanceof Element ? node : node.parentElement)?.closest('.oc-chunk');
  if (piece) {
    range.selectNodeContents(piece);
    range.setEnd(node, at);
  }
  return range.toString().length;
}
