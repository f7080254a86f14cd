/** How far a call is: a bar, its words, and now and then a word for a screen reader. */

import { trans } from './i18n';
import { el, setRole, setText, show } from './dom';
import { visibleLine } from './format';
import type { CardProgress } from './types';

/** A screen reader is told this often at most, in milliseconds; a short call says nothing. */
export const SAY_MS = 10_000;

/** The progress of one card. */
export class ProgressView {
  readonly bar = el('div', 'oc-bar');
  readonly message = el('div', 'oc-message');
  /** Spoken when it changes; the bar's own value is not. */
  readonly announcement = el('div', 'oc-sr');
  private readonly fill = el('i');
  private spoken: number | undefined;

  constructor() {
    setRole(this.bar, 'progressbar', trans.__('Progress'));
    this.bar.append(this.fill);
    this.announcement.setAttribute('role', 'status');
  }

  /** Shows `progress`; nothing: there is none, or the call is over. */
  update(progress: CardProgress | undefined): void {
    const message = visibleLine(progress?.message ?? '');
    show(this.bar, !!progress);
    show(this.announcement, !!progress);
    show(this.message, message !== '');
    setText(this.message, message);
    if (!progress) {
      this.spoken = undefined;
      setText(this.announcement, '');
      return;
    }
    const { value, total } = progress;
    const known = total !== undefined && total > 0;
    const percent = known ? Math.min(100, Math.max(0, (value / total) * 100)) : 100;
    this.fill.style.width = `${percent}%`;
    this.bar.classList.toggle('oc-unknown', !known);
    if (known) {
      this.bar.setAttribute('aria-valuenow', String(Math.round(percent)));
    } else {
      this.bar.removeAttribute('aria-valuenow');
    }
    const words = [known ? trans.__('%1 percent', Math.round(percent)) : '', message].filter(Boolean).join(', ');
    if (message) {
      this.bar.setAttribute('aria-valuetext', words);
    } else {
      this.bar.removeAttribute('aria-valuetext');
    }
    const now = Date.now();
    this.spoken ??= now;
    if (now - this.spoken >= SAY_MS) {
      this.spoken = now;
      setText(this.announcement, words);
    }
  }
}
