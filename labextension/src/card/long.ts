/**
 * A box of long text that scrolls. Past a threshold it is cut into pieces, and only those near what is seen are in the
 * page; the others keep their height. Before the browser (or JupyterLab) searches the page all pieces are put in, and a
 * selection that reaches over pieces that are not there is copied whole.
 */

import { el } from './dom';

/** Some lines of the text. */
export interface Piece {
  lines: number;
  characters: number;
  /** Makes what is shown. */
  fill(): Node[];
  /** The text between two places in what is shown; without one, from the beginning or to the end. */
  text(from?: Place, to?: Place): string;
  /** It goes on in the next piece without a line's end. */
  open?: boolean;
}

export type Place = [node: Node, offset: number];

/** More lines or characters than this, and the text is cut into pieces. */
export const WHOLE_LINES = 300;
export const WHOLE_CHARACTERS = 24_000;
/** Characters in a row of the box, for the height of what was never shown. */
const COLUMNS = 100;
/** How far outside of what is seen pieces are made. */
const MARGIN = '500px 0px';

interface Chunk {
  piece: Piece;
  node: HTMLElement;
  filled: boolean;
}

const boxes = new WeakMap<Element, LongBox>();

/** Shows `pieces` in `node`, replacing what is there. */
export function drawLong(node: HTMLElement, pieces: Piece[]): void {
  let box = boxes.get(node);
  if (!box && !needsPieces(pieces)) {
    node.replaceChildren(...joined(pieces));
    return;
  }
  if (!box) {
    box = new LongBox(node);
    boxes.set(node, box);
  }
  box.show(pieces);
}

function needsPieces(pieces: Piece[]): boolean {
  const lines = pieces.reduce((sum, piece) => sum + piece.lines, 0);
  const characters = pieces.reduce((sum, piece) => sum + piece.characters, 0);
  return pieces.length > 1 && (lines > WHOLE_LINES || characters > WHOLE_CHARACTERS);
}

/** All of them, with the line's end that separates two blocks of text where they stand in one. */
function joined(pieces: Piece[]): Node[] {
  return pieces.flatMap((piece, at) => {
    const nodes = piece.fill();
    const last = nodes[nodes.length - 1];
    const separate = at < pieces.length - 1 && !piece.open && !(last instanceof HTMLElement && last.classList.contains('oc-row'));
    return separate ? [...nodes, document.createTextNode('\n')] : nodes;
  });
}

class LongBox {
  private chunks: Chunk[] = [];
  private observer: IntersectionObserver | undefined;

  constructor(private readonly node: HTMLElement) {
    node.addEventListener('copy', event => this.copy(event));
    watchSearch();
  }

  show(pieces: Piece[]): void {
    this.observer?.disconnect();
    this.observer = undefined;
    this.chunks = [];
    const long = needsPieces(pieces);
    this.node.classList.toggle('oc-long', long);
    if (!long) {
      this.node.replaceChildren(...joined(pieces));
      return;
    }
    this.chunks = pieces.map(piece => {
      const node = el('span', 'oc-chunk');
      const rows = Math.max(piece.lines, Math.ceil(piece.characters / COLUMNS));
      node.style.height = `${(rows * 1.5).toFixed(1)}em`;
      return { piece, node, filled: false };
    });
    this.node.replaceChildren(...this.chunks.map(({ node }) => node));
    if (typeof IntersectionObserver === 'undefined') {
      this.fillAll();
      return;
    }
    const byNode = new Map<Element, Chunk>(this.chunks.map(chunk => [chunk.node, chunk]));
    this.observer = new IntersectionObserver(
      entries => entries.forEach(({ target, isIntersecting }) => this.seen(byNode.get(target), isIntersecting)),
      { root: this.node, rootMargin: MARGIN }
    );
    this.chunks.forEach(({ node }) => this.observer?.observe(node));
    fill(this.chunks[0]); // so that something is there at once
  }

  /** Puts all pieces into the page, where they stay. */
  fillAll(): void {
    this.observer?.disconnect();
    this.chunks.forEach(fill);
  }

  private seen(chunk: Chunk | undefined, near: boolean): void {
    if (!chunk || chunk.filled === near) {
      return;
    }
    if (near) {
      fill(chunk);
    } else if (chunk.node.offsetHeight && !getSelection()?.containsNode(chunk.node, true)) {
      chunk.node.style.height = `${chunk.node.offsetHeight}px`;
      chunk.node.replaceChildren();
      chunk.filled = false;
    }
  }

  private copy(event: ClipboardEvent): void {
    const selection = getSelection();
    if (!this.chunks.length || !selection?.rangeCount || selection.isCollapsed) {
      return;
    }
    const text = this.textOf(selection.getRangeAt(0));
    if (text !== undefined) {
      event.clipboardData?.setData('text/plain', text);
      event.preventDefault();
    }
  }

  /** The text of `range`; nothing if it reaches out of the box. */
  private textOf(range: Range): string | undefined {
    const { startContainer, startOffset, endContainer, endOffset } = range;
    if (!this.node.contains(startContainer) || !this.node.contains(endContainer)) {
      return undefined;
    }
    const whole = document.createRange();
    let text = '';
    for (const [at, { piece, node }] of this.chunks.entries()) {
      whole.selectNode(node);
      const begins = range.compareBoundaryPoints(Range.END_TO_START, whole) < 0;
      const ends = range.compareBoundaryPoints(Range.START_TO_END, whole) > 0;
      if (begins && ends) {
        const from: Place | undefined = node.contains(startContainer) ? [startContainer, startOffset] : undefined;
        const last = node.contains(endContainer) || at === this.chunks.length - 1;
        text += piece.text(from, node.contains(endContainer) ? [endContainer, endOffset] : undefined) + (last || piece.open ? '' : '\n');
      }
    }
    return text;
  }
}

function fill(chunk: Chunk): void {
  if (!chunk.filled) {
    chunk.filled = true;
    chunk.node.style.height = '';
    chunk.node.replaceChildren(...chunk.piece.fill());
  }
}

let watching = false;

/** From now on a search and printing put everything into the page. */
function watchSearch(): void {
  if (!watching) {
    watching = true;
    beforeSearch(() => document.querySelectorAll('.oc-long').forEach(node => boxes.get(node)?.fillAll()));
  }
}

/** Calls `search` before the browser or JupyterLab searches the page, `print` before it is printed. */
export function beforeSearch(search: () => void, print = search): void {
  window.addEventListener('beforeprint', print);
  document.addEventListener(
    'keydown',
    ({ key, ctrlKey, metaKey }) => {
      if (key === 'F3' || ((ctrlKey || metaKey) && (key === 'f' || key === 'g'))) {
        search();
      }
    },
    true
  );
}
