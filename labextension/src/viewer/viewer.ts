/** A viewer of a file of any size: the rows around one place are in the page, a slider beside them stands for all. */

import { el, scrollBox } from '../card/dom';
import { errorMessage, grouped } from '../card/format';
import type { CardSpill } from '../card/types';
import { trans } from '../card/i18n';
import { SilentError } from '../kernel/requests';
import { preferences } from '../card/preferences';
import { Toolbar, setPressed } from './toolbar';
import { clearMarks, drawRows, setLabels } from './rowElements';
import { FindBar } from './search';
import { handleKey } from './keys';
import type { KeyActions } from './keys';
import { firstVisibleRow, positionText } from './position';
import { Rows } from './rows';
import { COPY_BYTES, Download, fetchFile } from './download';
import { PAGE_ROWS, Source } from './source';
import type { Extent, Page, Where } from './source';
import { FailureNotice } from './failure';

/** Rows shown before the one that was asked for. */
const BEFORE = 20;
/** Closer than this to an end (pixels), more is fetched. */
const NEAR = 1200;
/** Between two looks at a file whose lines are being counted, and at one that is being written. */
const COUNT_MS = 40;
const WRITING_MS = 500;
/** A kernel that did not answer is asked again after so long. */
const RETRY_AFTER_MS = 5_000;

let viewers = 0;

/** Shows the file of `spill`. */
export class Viewer {
  readonly node = el('div', 'oc-pages');
  readonly rows = new Rows();
  private readonly text = el('pre', 'oc-lines');
  private readonly bar: Toolbar;
  /** Where in the whole file the rows are, from 0 to 1. */
  private readonly rail = el('input', 'oc-rail');
  private readonly find: FindBar;
  private readonly failure: FailureNotice;
  /** Counts what was asked for, so that an answer to something older is dropped. */
  private generation = 0;
  private growing = false;
  private following = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private disposed = false;
  /** The line that is marked. */
  private markedLine = 0;
  /** The line that was asked for last; its rows may be under way still. */
  private requested: number;
  /** The share of the file that the rail was dragged to last. */
  private dragged: number | undefined;
  private dragging = false;
  private lastTop = 0;
  private readonly download: Download;

  constructor(
    spill: CardSpill,
    private readonly source: Source
  ) {
    this.text.id = `oc-lines-${++viewers}`;
    this.bar = new Toolbar({
      start: () => void this.goTo(1),
      end: () => void this.goTo(0),
      line: line => void this.goTo(line).then(() => this.focus()),
      back: () => this.focus(),
      follow: () => this.follow(!this.following),
      wrap: () => this.wrap(!this.text.classList.contains('oc-wrap')),
      find: () => this.openFind(),
      copy: () => void this.copy(),
      download: () => void this.download.press()
    });
    this.download = new Download(source, this.bar.download, words => this.bar.report(words));
    Object.assign(this.rail, { type: 'range', min: '0', max: '1', step: '0.0001', tabIndex: -1 });
    this.rail.setAttribute('aria-label', trans.__('Position in the whole output'));
    this.rail.setAttribute('aria-orientation', 'vertical');
    this.rail.addEventListener('input', () => void this.drag(Number(this.rail.value)));
    this.rail.addEventListener('change', () => this.focus());
    this.find = new FindBar(source, {
      line: () => this.markedLine || (this.rows.number(this.topRow()) ?? 1),
      goTo: line => this.goTo(line),
      closed: () => {
        clearMarks(this.text);
        this.focus();
      }
    });
    this.requested = spill.line;
    this.failure = new FailureNotice(spill, () => void this.goTo(this.requested));
    scrollBox(this.text, trans.__('Whole output'), 'region');
    this.text.addEventListener('scroll', () => this.scrolled());
    const keys: KeyActions = {
      find: () => this.openFind(),
      hit: direction => this.find.shown && void this.find.go(direction),
      closeFind: () => this.find.close(),
      line: () => this.bar.askLine(),
      start: () => void this.goTo(1),
      end: () => void this.goTo(0)
    };
    this.node.addEventListener('keydown', event => handleKey(event, this.find.shown, keys));
    const body = el('div', 'oc-pages-body');
    body.append(this.text, this.rail);
    this.node.append(this.bar.node, this.find.node, this.failure.node, body);
    this.wrap(preferences().wrapLines);
  }

  /** Shows the rows around `line`, which is marked; below 1: the last ones. */
  async goTo(line: number): Promise<void> {
    this.requested = line;
    this.dragged = undefined; // a place that the rail was dragged to before is not wanted any more
    const page = await this.get(line < 1 ? {} : { line: Math.max(1, line - BEFORE) }, line);
    if (!page) {
      return;
    }
    this.markedLine = Math.max(0, line);
    this.replace(page);
    this.reveal();
    this.scheduleLook();
  }

  /** Scrolls to the marked line; to the end if there is none. */
  private reveal(): void {
    if (!this.markedLine) {
      this.text.scrollTop = this.text.scrollHeight;
    } else {
      const marked = this.text.querySelector<HTMLElement>('.oc-here');
      const hit = marked?.querySelector<HTMLElement>('.oc-hit');
      this.text.scrollTop = Math.max(0, (marked?.offsetTop ?? 0) - 60);
      this.text.scrollLeft = hit && hit.offsetLeft > this.text.clientWidth ? hit.offsetLeft - 80 : 0;
    }
    this.lastTop = this.text.scrollTop;
    this.drawPosition();
    this.fill();
  }

  /** Shows what is written as it comes, until the person scrolls up. */
  follow(on: boolean): void {
    this.following = on;
    setPressed(this.bar.follow, on);
    if (on) {
      void this.goTo(0);
    }
  }

  /** Puts the focus where the arrow keys scroll. */
  focus(): void {
    this.text.focus({ preventScroll: true });
  }

  /** Ends what goes on. */
  dispose(): void {
    this.disposed = true;
    this.generation++;
    clearTimeout(this.timer);
    this.find.end();
    this.download.cancel();
  }

  // ------------------------------------------------------------------ rows

  /** A page; nothing if there is trouble or something else was asked for meanwhile, which `more` rows never are. */
  private async get(where: Where, line = 0, more = false): Promise<Page | undefined> {
    const generation = more ? this.generation : ++this.generation;
    try {
      const page = await this.source.page(where, PAGE_ROWS, this.find.id, (scanned, bytes) => {
        const percent = Math.floor((100 * scanned) / Math.max(1, bytes));
        if (generation === this.generation) {
          this.bar.showPosition(trans.__('looking for line %1: %2 %', grouped(line), percent));
        }
        return generation === this.generation;
      });
      if (generation !== this.generation) {
        return undefined;
      }
      this.failure.clear();
      return page;
    } catch (error) {
      if (generation === this.generation) {
        this.fail(error, more ? () => this.look() : () => this.goTo(this.requested));
      }
      return undefined;
    }
  }

  /** Says why there is nothing; `retry` runs after a while where the kernel was silent, which may be busy only. */
  private fail(error: unknown, retry: () => Promise<void>): void {
    clearTimeout(this.timer);
    if (error instanceof SilentError) {
      const { generation } = this;
      this.timer = setTimeout(() => generation === this.generation && void retry(), RETRY_AFTER_MS);
    } else {
      this.following = false;
      setPressed(this.bar.follow, false);
    }
    this.bar.showPosition('');
    this.bar.showWriting('');
    this.failure.show(errorMessage(error));
  }

  private replace(page: Page): void {
    this.rows.replace(page);
    this.text.replaceChildren(...drawRows(page));
    if (!page.lines.length) {
      this.text.append(el('span', 'oc-empty', trans.__('The file is empty.')));
    }
    this.number();
  }

  /** Adds rows after or before those that are there, and drops some from the other end. */
  private async grow(direction: 1 | -1): Promise<void> {
    const { rows, text } = this;
    if (this.growing || this.dragging || (direction > 0 ? !rows.more : rows.start <= 0)) {
      return;
    }
    this.growing = true;
    const { generation } = this;
    let grown = false;
    try {
      const page = await this.get(direction > 0 ? { at: rows.end } : { before: rows.start }, 0, true);
      if (!page || !(direction > 0 ? rows.follows(page) : rows.precedes(page))) {
        return;
      }
      const drawn = drawRows(page);
      const before = text.scrollHeight;
      if (direction > 0) {
        text.querySelector('.oc-empty')?.remove();
        text.append(...drawn);
        const height = text.scrollHeight;
        for (let over = rows.append(page); over > 0; over--) {
          text.firstElementChild?.remove();
        }
        text.scrollTop -= height - text.scrollHeight;
      } else {
        text.prepend(...drawn);
        text.scrollTop += text.scrollHeight - before;
        for (let over = rows.prepend(page); over > 0; over--) {
          text.lastElementChild?.remove();
        }
      }
      this.lastTop = text.scrollTop;
      this.number();
      this.drawPosition();
      grown = true;
    } finally {
      this.growing = false;
    }
    if (grown || generation !== this.generation) {
      this.fill();
    }
  }

  /** Sets the rows' numbers, and the mark of the line that was asked for. */
  private number(): void {
    const labels = this.rows.labels();
    const rows = [...this.text.querySelectorAll('.oc-row')];
    setLabels(rows, labels);
    const markedLine = String(this.markedLine);
    rows.forEach((row, index) => row.classList.toggle('oc-here', labels[index] === markedLine));
    this.text.style.setProperty('--oc-digits', `${Math.max(4, labels.reduce((most, { length }) => Math.max(most, length), 0))}ch`);
  }

  // ------------------------------------------------------------------ scrolling

  private scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.text;
    const below = scrollHeight - scrollTop - clientHeight;
    if (this.following && scrollTop < this.lastTop && below > 4) {
      this.following = false;
      setPressed(this.bar.follow, false);
    }
    this.lastTop = scrollTop;
    this.growNear();
    this.drawPosition();
  }

  /** Fetches more where an end of the rows is near what is in view. */
  private growNear(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.text;
    if (scrollHeight - scrollTop - clientHeight < NEAR) {
      void this.grow(1);
    }
    if (scrollTop < NEAR) {
      void this.grow(-1);
    }
  }

  /** The same without a scroll: few rows may not fill what is seen, so that nothing can be scrolled. */
  private fill(): void {
    if (this.text.clientHeight > 0) {
      this.growNear();
    }
  }

  /** The rail was dragged: the rows there, as soon as those of an earlier place have come. */
  private async drag(share: number): Promise<void> {
    this.dragged = share;
    this.markedLine = 0;
    this.requested = share >= 1 ? 0 : Math.max(1, this.rows.guessLine(share * this.rows.extent.bytes));
    this.bar.showPosition(trans.__('near line %1', grouped(this.rows.guessLine(share * this.rows.extent.bytes))));
    if (this.dragging) {
      return;
    }
    this.dragging = true;
    let shown = false;
    try {
      while (this.dragged !== undefined && !this.disposed) {
        const to: number = this.dragged;
        this.dragged = undefined;
        const page = await this.get(to >= 1 ? {} : { near: Math.floor(to * this.rows.extent.bytes) });
        shown = page !== undefined;
        if (page) {
          this.replace(page);
          this.text.scrollTop = this.lastTop = to >= 1 ? this.text.scrollHeight : 0;
        }
      }
    } finally {
      this.dragging = false;
    }
    if (shown) {
      this.drawPosition();
      this.fill();
      this.scheduleLook();
    }
  }

  /** The first row in view. */
  private topRow(): number {
    return Math.min(firstVisibleRow(this.text), Math.max(0, this.rows.rows.length - 1));
  }

  private drawPosition(): void {
    const { rows, text } = this;
    const top = this.topRow();
    const words = positionText(rows, top);
    const atEnd = !rows.more && text.scrollHeight - text.scrollTop - text.clientHeight < 2;
    this.rail.disabled = atEnd && rows.start <= 0 && text.scrollTop <= 0;
    this.rail.setAttribute('aria-valuetext', words);
    if (!this.rail.matches(':active')) {
      this.rail.value = String(atEnd ? 1 : (rows.rows[top]?.offset ?? 0) / Math.max(1, rows.extent.bytes));
    }
    if (!this.dragging) {
      this.bar.showPosition(words);
    }
  }

  // ------------------------------------------------------------------ what changes by itself

  /** Looks at the file once in a while: lines are counted to its end, new ones come. */
  private scheduleLook(): void {
    clearTimeout(this.timer);
    const { extent } = this.rows;
    if (this.disposed || (extent.total !== null && !extent.writing && !this.following)) {
      this.showWriting(extent);
      return;
    }
    this.timer = setTimeout(() => void this.look(), extent.total === null ? COUNT_MS : WRITING_MS);
  }

  private async look(): Promise<void> {
    const { rows } = this;
    const generation = this.generation;
    try {
      const extent = await this.source.extent(rows.start);
      if (this.disposed) {
        return;
      }
      this.failure.clear();
      if (rows.extent.file && (extent.file !== rows.extent.file || extent.bytes < rows.extent.bytes)) {
        this.bar.report(trans.__('The file was replaced or truncated; this is its current content.'));
        rows.extent = extent;
        await this.goTo(this.following ? 0 : this.requested);
        return;
      }
      const wasWriting = rows.extent.writing;
      rows.extent = extent;
      rows.more = extent.bytes > rows.end;
      if (rows.first === null && extent.number != null && generation === this.generation) {
        rows.first = extent.number;
        this.number();
      }
      if (this.following && rows.more && !this.growing) {
        await this.grow(1);
        this.text.scrollTop = this.text.scrollHeight;
        this.lastTop = this.text.scrollTop;
      }
      if (this.following && wasWriting && !extent.writing && !rows.more) {
        this.following = false;
        setPressed(this.bar.follow, false);
        this.bar.report(trans.__('The output is complete.'));
      }
      this.showWriting(extent);
      this.drawPosition();
      this.scheduleLook();
    } catch (error) {
      this.disposed || generation !== this.generation || this.fail(error, () => this.look());
    }
  }

  private showWriting({ writing }: Extent): void {
    this.bar.showWriting(writing ? (this.following ? trans.__('still being written, following') : trans.__('still being written')) : '');
  }

  // ------------------------------------------------------------------ the bar and the keys

  private wrap(on: boolean): void {
    this.text.classList.toggle('oc-wrap', on);
    setPressed(this.bar.wrap, on);
  }

  private openFind(): void {
    const selection = getSelection();
    const chosen = selection && this.text.contains(selection.anchorNode) ? selection.toString() : '';
    this.find.open(chosen.includes('\n') ? '' : chosen);
  }

  private async copy(): Promise<void> {
    const selection = getSelection();
    const chosen = selection && this.text.contains(selection.anchorNode) ? selection.toString() : '';
    try {
      const text = chosen || (await (await fetchFile(this.source, COPY_BYTES, () => !this.disposed))?.text());
      await navigator.clipboard.writeText(text ?? '');
      this.bar.report(chosen ? trans.__('Selection copied.') : trans.__('Whole output copied.'));
    } catch (error) {
      this.bar.report(errorMessage(error));
    }
  }
}
