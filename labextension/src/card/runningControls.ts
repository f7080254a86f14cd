/** What a card has while its call or run goes on: a clock, and a Stop button that comes back when nothing happens. */

import { trans } from './i18n';
import { button, hasFocus, setText } from './dom';
import { RETRY_MS } from './requestView';

/** How often a clock is set, in milliseconds. */
const TICK_MS = 250;

/** The clock and the Stop button of one card. */
export class RunningControls {
  readonly stop: HTMLButtonElement;
  private timer: ReturnType<typeof setInterval> | undefined;
  private wasInPage = false;

  /**
   * @param card - Where it is drawn; once it was in the page and is not any more, the clock ends.
   * @param name - What a screen reader calls the button.
   * @param tick - Sets the clock.
   * @param press - Asks the kernel to stop.
   */
  constructor(
    private readonly card: HTMLElement,
    name: string,
    private readonly tick: () => void,
    press: () => void
  ) {
    this.stop = button(trans.__('Stop'), '', 'oc-button oc-stop', () => {
      if (hasFocus(this.stop)) {
        this.card.focus({ preventScroll: true });
      }
      this.stop.disabled = true;
      setText(this.stop, trans.__('Stopping…'));
      setTimeout(() => {
        this.stop.disabled = false;
        setText(this.stop, trans.__('Stop'));
      }, RETRY_MS);
      press();
    });
    this.stop.setAttribute('aria-label', name);
  }

  /** Sets the clock, and goes on doing so if `on`. */
  run(on: boolean): void {
    if (!on) {
      this.end();
    } else {
      this.timer ??= setInterval(() => this.beat(), TICK_MS);
    }
    this.beat();
  }

  /** Ends the clock. */
  end(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private beat(): void {
    this.tick();
    this.wasInPage ||= this.card.isConnected;
    if (this.wasInPage && !this.card.isConnected) {
      this.end();
    }
  }
}
