/**
 * Several settled calls in a row behind one line. The line is a button before them; they stay where they are and are
 * only hidden, so that no focus and no scrolling is lost.
 */

import { trans } from './i18n';
import { preferences } from './preferences';
import { el, hasFocus, setText } from './dom';
import { visibleLine } from './format';

/** Fewer than this are not folded. */
export const FOLD_FROM = 3;
/** Names of tools that a line says. */
const NAMES = 4;

/** Something in a list. */
export interface ListEntry {
  node: HTMLElement;
  /** The tool, if it is a call that ended well; nothing for what is never folded. */
  settled?: string;
}

/** The lines of one list. */
export class FoldedCalls {
  private readonly lines = new Map<HTMLElement, FoldLine>();

  /** Puts lines where they belong; `entries` are all that is in the list, in their order. */
  update(entries: ListEntry[]): void {
    const starts = new Map<HTMLElement, ListEntry[]>();
    if (preferences().foldCalls) {
      let run: ListEntry[] = [];
      for (const entry of [...entries, undefined]) {
        if (entry?.settled !== undefined) {
          run.push(entry);
          continue;
        }
        if (run.length >= FOLD_FROM) {
          starts.set(run[0].node, run);
        }
        run = [];
      }
    }
    for (const [first, line] of this.lines) {
      if (!starts.has(first)) {
        line.remove();
        this.lines.delete(first);
      }
    }
    const free = new Set(entries.map(({ node }) => node));
    for (const [first, members] of starts) {
      let line = this.lines.get(first);
      if (!line) {
        line = new FoldLine();
        this.lines.set(first, line);
      }
      line.update(members);
      members.forEach(({ node }) => free.delete(node));
    }
    free.forEach(node => node.classList.remove('oc-folded'));
  }

  /** Takes all lines away. */
  clear(): void {
    this.lines.forEach(line => line.remove());
    this.lines.clear();
  }
}

class FoldLine {
  private readonly button = el('button', 'oc-fold');
  private members: ListEntry[] = [];
  private open = false;

  constructor() {
    this.button.type = 'button';
    this.button.addEventListener('click', () => {
      this.open = !this.open;
      this.draw();
    });
  }

  update(members: ListEntry[]): void {
    this.members = members;
    if (members[0].node.previousSibling !== this.button) {
      members[0].node.before(this.button);
    }
    // what a person is in is not taken away
    this.open ||= members.some(({ node }) => !node.classList.contains('oc-folded') && hasFocus(node));
    const counts = new Map<string, number>();
    members.forEach(({ settled = '' }) => counts.set(settled, (counts.get(settled) ?? 0) + 1));
    const names = [...counts].map(([name, n]) => visibleLine(name) + (n > 1 ? ` ×${n}` : ''));
    const tools = names.slice(0, NAMES).join(', ') + (names.length > NAMES ? ', …' : '');
    const n = members.length;
    setText(this.button, trans._n('%1 completed call: %2', '%1 completed calls: %2', n, tools));
    this.draw();
  }

  remove(): void {
    this.button.remove();
    this.members.forEach(({ node }) => node.classList.remove('oc-folded'));
  }

  private draw(): void {
    this.button.setAttribute('aria-expanded', String(this.open));
    this.members.forEach(({ node }) => node.classList.toggle('oc-folded', !this.open));
  }
}
