/** A scrollbar that stands for the whole file, whatever part of it is in the page. */

import { el } from '../card/dom';
import { trans } from '../card/i18n';

const LEAST_THUMB = 24;

/** Where in the file a person wants to be: a share of it, from 0 to 1. */
export type Wanted = (share: number) => void;

export class Rail {
  readonly node = el('div', 'oc-rail');
  private readonly thumb = el('div', 'oc-thumb');
  private from = 0;
  private to = 1;
  /** Where in the thumb it is held; nothing: it is not. */
  private held: number | undefined;

  constructor(
    controls: string,
    private readonly wanted: Wanted
  ) {
    this.node.setAttribute('role', 'scrollbar');
    this.node.setAttribute('aria-orientation', 'vertical');
    this.node.setAttribute('aria-controls', controls);
    this.node.setAttribute('aria-label', trans.__('Position in the whole output'));
    this.node.setAttribute('aria-valuemin', '0');
    this.node.setAttribute('aria-valuemax', '100');
    this.node.append(this.thumb);
    this.node.addEventListener('pointerdown', event => this.press(event));
    this.node.addEventListener('pointermove', event => this.move(event));
    this.node.addEventListener('pointerup', event => this.release(event));
    this.node.addEventListener('pointercancel', event => this.release(event));
    this.show(0, 1, '');
  }

  /** Shows that what is in view reaches from one share of the file to another; `words` say where that is. */
  show(from: number, to: number, words: string): void {
    this.from = Math.min(1, Math.max(0, from));
    this.to = Math.min(1, Math.max(this.from, to));
    this.node.setAttribute('aria-valuenow', String(Math.round(100 * this.from)));
    this.node.setAttribute('aria-valuetext', words);
    if (this.held === undefined) {
      this.draw(this.from);
    }
  }

  /** Whether it is being dragged. */
  get dragged(): boolean {
    return this.held !== undefined;
  }

  private get height(): number {
    return Math.max(LEAST_THUMB, (this.to - this.from) * this.node.clientHeight);
  }

  private draw(share: number): void {
    const length = this.to - this.from;
    this.node.classList.toggle('oc-all', length >= 1);
    // the thumb's room is what is left of the rail, so that both ends are reached
    const travel = length < 1 ? Math.min(1, share / (1 - length)) : 0;
    this.thumb.style.height = `${this.height}px`;
    this.thumb.style.top = `${travel * Math.max(0, this.node.clientHeight - this.height)}px`;
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) {
      return;
    }
    event.preventDefault();
    const at = event.clientY - this.node.getBoundingClientRect().top;
    const top = parseFloat(this.thumb.style.top) || 0;
    this.held = at >= top && at <= top + this.height ? at - top : this.height / 2;
    this.node.setPointerCapture?.(event.pointerId);
    this.move(event);
  }

  private release(event: PointerEvent): void {
    this.move(event);
    this.held = undefined;
  }

  private move(event: PointerEvent): void {
    if (this.held === undefined) {
      return;
    }
    const room = this.node.clientHeight - this.height;
    const top = event.clientY - this.node.getBoundingClientRect().top - this.held;
    const travel = room > 0 ? Math.min(1, Math.max(0, top / room)) : 0;
    const share = travel * (1 - (this.to - this.from));
    this.draw(share);
    this.wanted(travel >= 1 ? 1 : share);
  }
}
