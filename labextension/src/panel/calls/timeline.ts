/** The bars: one row for each call, its name over its bar, of which only those in view are in the page. */

import { el, scrollBox, setText } from '../../card/dom';
import { duration, outcomeLook, outcomeWord, visibleLine } from '../../card/format';
import type { StateWords } from '../../card/format';
import { trans } from '../../card/i18n';
import type { Axis } from './axis';
import type { CallRow, Placed } from './callLog';
import { open, stateOf, waiting, worked } from './callLog';

/** Height of a row in pixels; the style sheet has the same. */
const LINE = 40;
/** Lines drawn beyond what is in view. */
const MARGIN = 8;

/** The tone of a call's state, as its card has it. */
export function tone(call: CallRow): StateWords['tone'] {
  return open(call) ? (waiting(call) === undefined ? 'run' : 'ask') : outcomeLook(stateOf(call)).tone;
}

/** What a screen reader says of a call, and a mouse that rests on it. */
export function sentence(call: CallRow, now: number): string {
  const waited = call.waited ? trans.__(', waited %1', duration(call.waited)) : '';
  const at = new Date(call.start).toLocaleTimeString();
  return trans.__('%1 %2: %3, %4%5, started %6', visibleLine(call.tool), visibleLine(call.title), outcomeWord(stateOf(call)), duration(worked(call, now)), waited, at);
}

/** The list of bars. */
export class Timeline {
  readonly node = el('div', 'oc-time-list');
  private readonly inner = el('div', 'oc-time-inner');
  private readonly drawn = new Map<string, HTMLElement>();
  private placed: readonly Placed[] = [];
  private axis: Axis | undefined;
  private now = 0;
  private asked = false;

  /** @param press - A call was chosen. */
  constructor(private readonly press: (call: CallRow) => void) {
    this.node.append(this.inner);
    scrollBox(this.node, trans.__('Calls on a time axis'));
    this.node.addEventListener('scroll', () => this.drawSoon());
    this.node.addEventListener('keydown', event => this.move(event));
  }

  update(placed: readonly Placed[], axis: Axis, now: number): void {
    [this.placed, this.axis, this.now] = [placed, axis, now];
    this.inner.style.height = `${placed.length * LINE}px`;
    this.draw();
  }

  private drawSoon(): void {
    if (!this.asked) {
      this.asked = true;
      requestAnimationFrame(() => {
        this.asked = false;
        this.draw();
      });
    }
  }

  private draw(): void {
    const height = this.node.clientHeight || 400;
    const first = Math.max(0, Math.floor(this.node.scrollTop / LINE) - MARGIN);
    const last = Math.min(this.placed.length, Math.ceil((this.node.scrollTop + height) / LINE) + MARGIN);
    const visible = new Set<string>();
    for (let at = first; at < last; at++) {
      const entry = this.placed[at];
      visible.add(entry.call.id);
      let row = this.drawn.get(entry.call.id);
      if (!row) {
        row = this.make();
        this.drawn.set(entry.call.id, row);
        this.inner.append(row);
      }
      this.fill(row, entry, at);
    }
    for (const [id, row] of this.drawn) {
      // the line in focus stays, or the keyboard would lose its place
      if (!visible.has(id) && !(row === document.activeElement && this.placed.some(({ call }) => call.id === id))) {
        row.remove();
        this.drawn.delete(id);
      }
    }
  }

  private make(): HTMLElement {
    const row = el('button', 'oc-time-row');
    row.type = 'button';
    const track = el('span', 'oc-time-track');
    track.setAttribute('aria-hidden', 'true');
    const name = el('span', 'oc-time-name');
    name.append(el('b'), ' ', el('span'));
    row.append(name, ' ', el('span', 'oc-time-state'), track);
    row.addEventListener('click', () => {
      const at = this.placed.find(({ call }) => call.id === row.dataset.id);
      if (at) {
        this.press(at.call);
      }
    });
    return row;
  }

  private fill(row: HTMLElement, { call, depth }: Placed, at: number): void {
    const [name, state, track] = row.children as unknown as HTMLElement[];
    row.style.top = `${at * LINE}px`;
    row.dataset.id = call.id;
    row.dataset.at = String(at);
    row.dataset.tone = tone(call);
    // its name is what it shows; the sentence is read after it
    row.title = sentence(call, this.now);
    name.style.paddingLeft = `${Math.min(depth, 6) * 0.8}em`;
    const [tool, title] = name.children as unknown as HTMLElement[];
    setText(tool, visibleLine(call.tool));
    setText(title, visibleLine(call.title));
    setText(state, stateOf(call) === 'completed' ? duration(worked(call, this.now)) : outcomeWord(stateOf(call)));
    const end = call.end ?? (open(call) ? this.now : call.start);
    const bars = [this.bar('oc-time-bar', call.start, end), ...call.waits.map(([from, to]) => this.bar('oc-time-wait', from, to ?? end))];
    track.replaceChildren(...bars);
  }

  private bar(name: string, from: number, to: number): HTMLElement {
    const bar = el('i', name);
    const [low, high] = [this.axis?.at(from) ?? 0, this.axis?.at(to) ?? 0];
    bar.style.left = `${low * 100}%`;
    bar.style.width = `max(2px, ${(high - low) * 100}%)`;
    return bar;
  }

  /** Arrows, Home and End go from line to line. */
  private move(event: KeyboardEvent): void {
    const here = Number((document.activeElement as HTMLElement | null)?.dataset?.at ?? -1);
    const last = this.placed.length - 1;
    const to = { ArrowDown: here + 1, ArrowUp: Math.max(0, here - 1), Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) {
      return;
    }
    event.preventDefault();
    const target = Math.min(last, to);
    const top = target * LINE;
    if (top < this.node.scrollTop || top + LINE > this.node.scrollTop + this.node.clientHeight) {
      this.node.scrollTop = Math.max(0, top - this.node.clientHeight / 2);
    }
    this.draw();
    this.drawn.get(this.placed[target].call.id)?.focus({ preventScroll: true });
  }
}
