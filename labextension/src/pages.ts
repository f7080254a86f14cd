/** A viewer that pages through a file of any size; where its lines come from is its maker's affair. */

import { button, el, setText, show } from './card/dom';
import { count, size, visibleLine } from './card/format';
import type { CardSpill } from './card/token';
import type { PageReply } from './messages';

/** Lines fetched at once. */
export const PAGE_LINES = 400;
/** Lines kept in the page; those far from view are dropped. */
const KEPT_LINES = 1600;
/** Lines shown before the one that was asked for. */
const BEFORE = 20;
/** Closer than this to an end (pixels), more is fetched. */
const NEAR = 400;

/** Gives `count` lines from `line` on (below 1: the last ones); rejected with words for a person. */
export type Fetch = (line: number, count: number) => Promise<PageReply>;

/** Shows the file of `spill`, from the line where it was cut. */
export class PageViewer {
  readonly node = el('div', 'oc-pages');
  private readonly place = el('span', 'oc-place');
  private readonly field = el('input', 'oc-line');
  private readonly text = el('pre', 'oc-lines');
  private readonly trouble = el('div', 'oc-trouble');
  private readonly reason = el('p');
  private readonly earlier: HTMLButtonElement;
  private readonly later: HTMLButtonElement;
  /** Number of the first line that is drawn. */
  private first = 1;
  private more = false;
  private total: number | null = null;
  private bytes: number;
  /** Counts what was asked for, so that an answer to something older is dropped. */
  private asked = 0;
  private growing = false;

  constructor(
    private readonly spill: CardSpill,
    private readonly fetch: Fetch
  ) {
    this.bytes = spill.bytes;
    this.total = spill.lines || null;
    const bar = el('div', 'oc-pages-bar');
    this.earlier = button('Earlier', '', 'oc-button', () => void this.page(-1));
    this.later = button('Later', '', 'oc-button', () => void this.page(1));
    const start = button('Start', '', 'oc-button', () => void this.goTo(1));
    const end = button('End', '', 'oc-button', () => void this.goTo(0));
    const label = el('label', '', 'Line ');
    this.field.type = 'number';
    this.field.min = '1';
    this.field.addEventListener('keydown', event => {
      event.stopPropagation();
      if (event.key === 'Enter' && this.field.value) {
        void this.goTo(Math.max(1, Math.floor(Number(this.field.value))));
      }
    });
    label.append(this.field);
    this.place.setAttribute('role', 'status');
    bar.append(start, this.earlier, this.later, end, label, this.place);
    this.text.tabIndex = 0;
    this.text.setAttribute('aria-label', 'Whole output');
    this.text.addEventListener('scroll', () => this.scrolled());
    this.drawTrouble();
    this.node.append(bar, this.trouble, this.text);
  }

  /** Shows the lines around `line`, which is marked; below 1: the last lines. */
  async goTo(line: number): Promise<void> {
    const from = line < 1 ? 0 : Math.max(1, line - BEFORE);
    const reply = await this.get(from, PAGE_LINES);
    if (!reply) {
      return;
    }
    this.first = reply.first ?? 1;
    this.more = reply.more ?? false;
    this.text.replaceChildren(...this.rows(reply, line));
    const marked = this.text.querySelector<HTMLElement>('.oc-here');
    this.text.scrollTop = line < 1 ? this.text.scrollHeight : Math.max(0, (marked?.offsetTop ?? 0) - 60);
    this.drawPlace();
  }

  /** Puts the focus where the arrow keys scroll. */
  focus(): void {
    this.text.focus({ preventScroll: true });
  }

  private get last(): number {
    return this.first + this.text.childElementCount - 1;
  }

  /** The page before or after what is in view. */
  private async page(direction: 1 | -1): Promise<void> {
    const { text } = this;
    const atEnd = direction > 0 ? text.scrollHeight - text.scrollTop - text.clientHeight < 2 : text.scrollTop < 2;
    if (atEnd) {
      await this.grow(direction);
    }
    text.scrollTop += direction * Math.max(40, text.clientHeight - 40);
  }

  private scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.text;
    if (scrollHeight - scrollTop - clientHeight < NEAR) {
      void this.grow(1);
    } else if (scrollTop < NEAR) {
      void this.grow(-1);
    }
  }

  /** Adds lines after or before those that are drawn, and drops some from the other end. */
  private async grow(direction: 1 | -1): Promise<void> {
    if (this.growing || (direction > 0 ? !this.more : this.first <= 1)) {
      return;
    }
    this.growing = true;
    try {
      const from = direction > 0 ? this.last + 1 : Math.max(1, this.first - PAGE_LINES);
      const reply = await this.get(from, direction > 0 ? PAGE_LINES : this.first - from);
      const got = reply?.lines?.length ?? 0;
      if (!reply || reply.first !== from || got === 0 || (direction < 0 && from + got !== this.first)) {
        // nothing new, or a page of long lines that ended early
        if (reply && direction < 0 && got) {
          await this.goTo(Math.max(1, this.first - got));
        }
        return;
      }
      const { text } = this;
      const over = text.childElementCount + got - KEPT_LINES;
      const before = text.scrollHeight;
      if (direction > 0) {
        text.append(...this.rows(reply));
        const height = text.scrollHeight;
        for (let i = 0; i < over; i++) {
          text.firstElementChild?.remove();
        }
        this.first += Math.max(0, over);
        text.scrollTop -= height - text.scrollHeight;
        this.more = reply.more ?? false;
      } else {
        text.prepend(...this.rows(reply));
        this.first = from;
        text.scrollTop += text.scrollHeight - before;
        for (let i = 0; i < over; i++) {
          text.lastElementChild?.remove();
          this.more = true;
        }
      }
      this.drawPlace();
    } finally {
      this.growing = false;
    }
  }

  /** Lines, however often it takes to ask; nothing if there is trouble or something else was asked for meanwhile. */
  private async get(line: number, lines: number): Promise<PageReply | undefined> {
    const asked = ++this.asked;
    try {
      for (;;) {
        const reply = await this.fetch(line, lines);
        if (asked !== this.asked) {
          return undefined;
        }
        if (reply.error !== undefined) {
          throw new Error(reply.error);
        }
        this.bytes = reply.bytes ?? this.bytes;
        if (reply.scanned === undefined) {
          this.total = reply.total ?? this.total;
          show(this.trouble, false);
          return reply;
        }
        const percent = Math.floor((100 * reply.scanned) / Math.max(1, this.bytes));
        setText(this.place, `looking for ${line < 1 ? 'the end' : `line ${line.toLocaleString('en-US')}`}: ${percent} %`);
      }
    } catch (error) {
      if (asked === this.asked) {
        setText(this.reason, error instanceof Error ? error.message : String(error));
        setText(this.place, '');
        show(this.trouble, true);
      }
      return undefined;
    }
  }

  private rows(reply: PageReply, marked = 0): HTMLElement[] {
    const first = reply.first ?? 1;
    return (reply.lines ?? []).map((line, index) => {
      const number = first + index;
      const row = el('span', number === marked ? 'oc-row oc-here' : 'oc-row');
      row.append(el('span', 'oc-n', String(number)), line);
      return row;
    });
  }

  private drawPlace(): void {
    const { first, last, total } = this;
    const shown = last < first ? 'no lines' : `lines ${first.toLocaleString('en-US')}–${last.toLocaleString('en-US')}`;
    const whole = total === null ? size(this.bytes) : `${count(total, 'line')}, ${size(this.bytes)}`;
    setText(this.place, `${shown} of ${whole}`);
    this.earlier.disabled = first <= 1 && this.text.scrollTop < 2;
    this.text.style.setProperty('--oc-digits', `${Math.max(4, String(last).length)}ch`);
  }

  private drawTrouble(): void {
    const { path, line } = this.spill;
    const how = el('p', '', 'Start the notebook’s kernel, run %load_ext opencode_jupyter, and ');
    how.append(button('try again', '', 'oc-link', () => void this.goTo(line)));
    how.append('. The file is on the kernel’s machine:');
    const quoted = /\s/.test(path) ? JSON.stringify(path) : path;
    const other = el('p', '', 'A cell reads it too: ');
    other.append(el('code', '', visibleLine(`%tool read ${quoted} offset=${line}`)));
    this.trouble.setAttribute('role', 'alert');
    this.trouble.append(this.reason, how, el('code', '', visibleLine(path)), other);
    show(this.trouble, false);
  }
}
