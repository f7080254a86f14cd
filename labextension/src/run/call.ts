/** A call in a run: a card while it goes on, then a line that opens; what went wrong stays open. */

import { disposeCard, renderCard, updateTail } from '../card';
import type { CardCallbacks, CardPart, TailUpdate } from '../card';
import { el, setText, StateMark } from '../card/dom';
import { DENIED, live, stateWords, timeWords, visibleLine } from '../card/format';

export class CallView {
  readonly node = el('details', 'oc-call');
  private readonly state = new StateMark(false);
  private readonly tool = el('span', 'oc-tool');
  private readonly title = el('span', 'oc-title');
  private readonly time = el('span', 'oc-time');
  private readonly root = el('div', 'oc-call-card');
  private part: CardPart | undefined;
  /** Whether its line stands for it; a person decides then what is open. */
  private folded = false;
  private drawn: CardPart | undefined;

  constructor(private readonly callbacks: CardCallbacks) {
    const line = el('summary', 'oc-line');
    line.append(this.state.node, this.tool, this.title, this.time);
    this.node.append(line, this.root);
    this.node.addEventListener('toggle', () => this.drawCard());
    this.node.open = true;
    this.node.classList.add('oc-live');
  }

  update(part: CardPart): void {
    this.part = part;
    const { mark, word, tone } = stateWords(part);
    const going = live(part);
    this.state.update(mark, tone === 'ok' ? '' : word);
    setText(this.tool, visibleLine(part.tool));
    setText(this.title, visibleLine(part.ui.label || part.state.title || ''));
    setText(this.time, going ? '' : timeWords(part, 0));
    this.node.dataset.tone = tone;
    if (!going && !this.folded) {
      this.folded = true;
      this.node.classList.remove('oc-live');
      this.node.open = tone === 'err' || mark === DENIED;
    }
    this.drawCard();
  }

  tail(tail: TailUpdate): void {
    if (this.node.open) {
      updateTail(this.root, tail);
    }
  }

  dispose(): void {
    disposeCard(this.root);
  }

  /** Its card is only drawn where it can be seen, and on paper it can (`print.css`). */
  drawCard(printed = false): void {
    if ((this.node.open || printed) && this.part && this.part !== this.drawn) {
      this.drawn = this.part;
      renderCard(this.root, this.part, this.callbacks);
    }
  }
}
