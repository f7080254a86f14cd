/** A call in a run: a card while it goes on, then a line that opens, and its pictures; what went wrong stays open. */

import { disposeCard, renderCard, updateTail } from '../card';
import type { CardCallbacks, CardPart, TailUpdate } from '../card';
import { drawPictures } from '../card/bodies/pictures';
import { el, safePicture, setText, show, StateMark } from '../card/dom';
import { visibleLine } from '../card/format';
import { DENIED, isLive, stateWords, timeWords } from '../card/wording';
import { trans } from '../card/i18n';
import type { CardAttachment } from '../card/types';

/** The pictures of a call and of those inside it. */
function picturesOf({ state, ui }: CardPart): CardAttachment[] {
  return [...(state.attachments ?? []).filter(({ url }) => safePicture(url)), ...(ui.children ?? []).flatMap(picturesOf)];
}

export class CallView {
  readonly node = el('div', 'oc-call-item');
  private readonly details = el('details', 'oc-call');
  /** What a closed line leaves in sight. */
  private readonly pictures = el('div', 'oc-thumbnails');
  private readonly state = new StateMark(false);
  private readonly tool = el('span', 'oc-tool');
  private readonly title = el('span', 'oc-title');
  private readonly time = el('span', 'oc-time');
  private readonly root = el('div', 'oc-call-card');
  private part: CardPart | undefined;
  /** Whether its line stands for it; a person decides then what is open. */
  private folded = false;
  private drawn: CardPart | undefined;
  private drawnPictures = '';

  constructor(private readonly callbacks: CardCallbacks) {
    const line = el('summary', 'oc-line');
    line.append(this.state.node, this.tool, this.title, this.time);
    this.details.append(line, this.root);
    this.details.addEventListener('toggle', () => this.drawCard());
    this.details.open = true;
    this.details.classList.add('oc-live');
    this.pictures.setAttribute('role', 'group');
    this.node.append(this.details, this.pictures);
  }

  update(part: CardPart): void {
    this.part = part;
    const { mark, word, tone } = stateWords(part);
    const running = isLive(part);
    this.state.update(mark, tone === 'ok' ? '' : word);
    setText(this.tool, visibleLine(part.tool));
    setText(this.title, visibleLine(part.ui.label || part.state.title || ''));
    setText(this.time, running ? '' : timeWords(part, 0));
    this.details.dataset.tone = tone;
    if (!running && !this.folded) {
      this.folded = true;
      this.details.classList.remove('oc-live');
      this.details.open = tone === 'err' || mark === DENIED;
    }
    this.drawCard();
    this.drawThumbnails(part);
  }

  /** Whether it has pictures, which no fold may hide. */
  get hasPictures(): boolean {
    return this.drawnPictures !== '';
  }

  tail(tail: TailUpdate): void {
    if (this.details.open) {
      updateTail(this.root, tail);
    }
  }

  dispose(): void {
    disposeCard(this.root);
  }

  /** Its card is only drawn where it can be seen, and on paper it can (`print.css`). */
  drawCard(printed = false): void {
    if ((this.details.open || printed) && this.part && this.part !== this.drawn) {
      this.drawn = this.part;
      renderCard(this.root, this.part, this.callbacks);
    }
  }

  private drawThumbnails(part: CardPart): void {
    const pictures = picturesOf(part);
    const content = pictures.map(({ url }) => url).join();
    show(this.pictures, content !== '');
    if (content !== this.drawnPictures) {
      this.drawnPictures = content;
      this.pictures.setAttribute('aria-label', trans.__('Pictures of %1', `${part.tool} ${part.ui.label}`));
      drawPictures(this.pictures, pictures);
    }
  }
}
