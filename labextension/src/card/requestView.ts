/** What approvals and questions share: buttons that are dead at first, one answer, and buttons that come back. */

import { trans } from './i18n';
import { el, hasFocus, setRole, setText } from './dom';

/** Buttons stay dead this long after they appear, so that a click meant for something else answers nothing. */
export const GUARD_MS = 300;
/** With no reaction from the kernel for this long, the buttons come back. */
export const RETRY_MS = 8000;

/** An event on a request's node: the focus came to it by itself, so keys and buttons are dead for a moment. */
export const GUARD = 'oc-guard';

type Control = HTMLButtonElement | HTMLInputElement | HTMLTextAreaElement;

/** One request; made anew for each. */
export abstract class RequestView {
  readonly node = el('div', 'oc-ask');
  protected readonly position = el('span', 'oc-place');
  protected readonly note = el('div', 'oc-note');
  protected readonly controls: Control[] = [];
  protected alive = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** @param key - Which request this is: its id and digest. */
  constructor(
    readonly key: string,
    name: string
  ) {
    setRole(this.node, 'region', name);
    this.note.setAttribute('role', 'status');
    this.node.addEventListener(GUARD, () => this.alive && this.guard());
  }

  /** A key pressed in the card, outside its text fields. True if it meant something here. */
  abstract press(key: string, target: HTMLElement): boolean;

  /** Takes what may change while a request waits: its place in the queue. */
  setPosition(position: [number, number] | undefined): void {
    const [at, of] = position ?? [1, 1];
    setText(this.position, of > 1 ? trans.__('%1 of %2 waiting', at, of) : '');
  }

  /** Ends the timers. */
  dispose(): void {
    clearTimeout(this.timer);
  }

  /** Makes the buttons dead for a moment. */
  protected guard(): void {
    this.enable(false);
    this.timer = setTimeout(() => this.enable(true), GUARD_MS);
  }

  /** Sends an answer, once; the buttons come back if nothing happens. */
  protected sendOnce(send: () => void): void {
    if (!this.alive) {
      return;
    }
    this.enable(false);
    setText(this.note, trans.__('Sent…'));
    this.timer = setTimeout(() => {
      setText(this.note, trans.__('The kernel has not received the answer yet. You can answer again.'));
      this.enable(true);
    }, RETRY_MS);
    send();
  }

  protected enable(on: boolean): void {
    clearTimeout(this.timer);
    this.alive = on;
    if (!on && this.controls.some(hasFocus)) {
      // a button that is disabled loses the focus to nothing
      this.node.closest<HTMLElement>('.oc-card')?.focus({ preventScroll: true });
    }
    for (const control of this.controls) {
      control.disabled = !on;
    }
  }
}
