/** A card: one tool call, drawn from its JSON and kept up to date without touching what did not change. */

import { trans } from './i18n';
import { CHANGED, preferences } from './preferences';
import { ansiText, drawOutput } from './ansi';
import { ApprovalView } from './approvalView';
import { BodiesView, repeatsOutput } from './bodies';
import { textBox } from './copy';
import type { CopyBox } from './copy';
import { drawDiff } from './diffview';
import { el, hasFocus, setText, show, StateMark } from './dom';
import { FoldedCalls } from './foldedCalls';
import { drawSpill, FooterView } from './footer';
import { extent, visibleLine } from './format';
import { isLive, shownOutput, stateWords, timeWords } from './wording';
import { RunningControls } from './runningControls';
import { linkPaths, markPath } from './pathLinks';
import { ProgressView } from './progress';
import { QuestionView } from './questionView';
import type { CardCallbacks, CardPart, TailUpdate } from './types';

const views = new WeakMap<HTMLElement, CardView>();

/**
 * Draws `part` into `root`, or brings what is drawn there up to date.
 *
 * @param callbacks - What its buttons call. Without them the card has no buttons. Those of the first call stay.
 * @param nested - Drawn inside another card: what it wrote is folded away once it is done.
 */
export function renderCard(root: HTMLElement, part: CardPart, callbacks: CardCallbacks = {}, nested = false): void {
  let view = views.get(root);
  if (!view) {
    view = new CardView(root, callbacks, nested);
    views.set(root, view);
  }
  view.update(part);
}

// cards follow the person's preferences as they change
document.addEventListener(CHANGED, () => {
  document.querySelectorAll('.oc-card').forEach(({ parentElement }) => parentElement && views.get(parentElement)?.redraw());
});

/** Puts a new end of the live output into the card at `root`, leaving all else alone. */
export function updateTail(root: HTMLElement, tail: TailUpdate): void {
  views.get(root)?.updateTail(tail);
}

/** Ends the timers of the card at `root` and empties it. */
export function disposeCard(root: HTMLElement): void {
  views.get(root)?.dispose();
  views.delete(root);
  root.replaceChildren();
}

class CardView {
  private readonly card = el('div', 'oc-card');
  private readonly tool = el('span', 'oc-tool');
  private readonly title = el('span', 'oc-title');
  private readonly state = new StateMark(true);
  private readonly time = el('span', 'oc-time');
  private readonly controls: RunningControls;
  private readonly progress = new ProgressView();
  private readonly diff = textBox('oc-diff', trans.__('Change'), trans.__('Copy change'), () => this.part.ui.diff ?? '');
  private readonly text = textBox('oc-out', trans.__('Output'), trans.__('Copy output'), () => ansiText(this.output()));
  private readonly error = textBox('oc-error', trans.__('Error'), trans.__('Copy error'), () =>
    ansiText(this.part.state.error ?? '')
  );
  private readonly bodies = new BodiesView();
  private readonly childList = el('div', 'oc-nest');
  private readonly folds = new FoldedCalls();
  private readonly cut = el('div', 'oc-cut');
  private readonly foot: FooterView;
  private readonly children = new Map<string, HTMLElement>();
  private readonly drawn = new Map<HTMLElement, string>();
  private part!: CardPart;
  private request: ApprovalView | QuestionView | undefined;
  private liveTail: TailUpdate | undefined;

  constructor(
    root: HTMLElement,
    private readonly callbacks: CardCallbacks,
    private readonly nested: boolean
  ) {
    const { card } = this;
    card.tabIndex = -1;
    card.setAttribute('role', 'group');
    this.time.setAttribute('aria-hidden', 'true');
    this.controls = new RunningControls(
      card,
      trans.__('Stop'),
      () => setText(this.time, timeWords(this.part, Date.now())),
      () => callbacks.stop?.(this.part.callID)
    );
    this.foot = new FooterView(callbacks);
    this.setLines();
    const head = el('div', 'oc-head');
    head.append(this.tool, this.title, this.state.node, this.time, this.controls.stop);
    const { bar, message, announcement } = this.progress;
    card.append(head, bar, message, announcement, this.diff.node, ...this.bodies.nodes, this.text.node, this.error.node);
    card.append(this.childList, this.cut, this.foot.node);
    card.addEventListener('keydown', event => this.pressKey(event));
    root.replaceChildren(card);
  }

  update(part: CardPart): void {
    const before = this.part;
    this.part = part;
    const { state, ui } = part;
    const running = isLive(part);
    // messages come in order, so a whole update is newer than the tail before it, unless it counts fewer bytes
    const newer = ui.tail !== undefined && (ui.bytes ?? 0) >= (this.liveTail?.bytes ?? 0);
    if (part.callID !== before?.callID || !running || newer) {
      this.liveTail = undefined;
    }
    this.drawHead(running);
    this.drawProgress(running);
    const diff = ui.diff && ui.diff !== ui.ask?.diff ? ui.diff : '';
    this.drawBox(this.diff, diff, inner => drawDiff(inner, diff));
    this.bodies.update(part);
    this.drawOutput(running);
    const error = state.error ?? '';
    this.drawBox(this.error, error, inner => drawOutput(inner, error));
    this.drawChildren(ui.children ?? []);
    this.drawRequest(running);
    const { spill } = ui;
    this.draw(this.cut, spill ? JSON.stringify(spill) : '', () => spill && drawSpill(this.cut, spill, this.openers()));
    linkPaths(this.card, part, this.callbacks);
    this.controls.run(running);
  }

  /** The preferences have changed. */
  redraw(): void {
    this.setLines();
    this.update(this.part);
  }

  private setLines(): void {
    this.card.style.setProperty('--oc-lines', String(preferences().outputLines));
  }

  updateTail(tail: TailUpdate): void {
    if (this.part && isLive(this.part)) {
      this.liveTail = tail;
      this.drawOutput(true);
      if (tail.progress) {
        this.part = { ...this.part, ui: { ...this.part.ui, progress: tail.progress } };
        this.drawProgress(true);
      }
    }
  }

  dispose(): void {
    this.controls.end();
    this.request?.dispose();
    this.children.forEach(disposeCard);
  }

  /** Draws `node` if `content` is not what it shows already; nothing to show hides it. */
  private draw(node: HTMLElement, content: string, paint: () => void): void {
    show(node, content !== '');
    if ((this.drawn.get(node) ?? '') !== content) {
      this.drawn.set(node, content);
      paint();
    }
  }

  private drawBox(box: CopyBox, content: string, paint: (inner: HTMLElement) => void): void {
    this.draw(box.node, content, () => {
      if (content) {
        box.ready();
      }
      paint(box.inner);
    });
  }

  private drawHead(running: boolean): void {
    const { part } = this;
    const label = visibleLine(part.ui.label || part.state.title || '');
    const { word, mark, tone } = stateWords(part);
    setText(this.tool, visibleLine(part.tool));
    setText(this.title, label);
    this.title.title = label;
    if (part.ui.opens) {
      markPath(this.title, part.ui.opens.path, part.ui.opens.line);
    }
    this.card.dataset.call = part.callID;
    this.card.dataset.part = part.id;
    this.card.setAttribute('aria-label', `${visibleLine(part.tool)} ${label}`.trim());
    this.state.update(mark, word);
    if (this.card.dataset.tone !== tone) {
      this.card.dataset.tone = tone;
    }
    const stoppable = running && part.state.status === 'running' && !part.ui.ask && !part.ui.question && !!this.callbacks.stop;
    show(this.controls.stop, stoppable);
  }

  /** The card's callbacks; an output is opened under the call's name. */
  private openers(): CardCallbacks {
    const { open } = this.callbacks;
    const title = (): string => [this.part.tool, this.part.ui.label || this.part.state.title].filter(Boolean).join(': ');
    return { ...this.callbacks, open: open && (spill => open({ ...spill, title: title() })) };
  }

  private drawProgress(running: boolean): void {
    this.progress.update(running ? this.part.ui.progress : undefined);
  }

  /** What the call wrote, or its end while it runs. */
  private output(): string {
    const { state, ui } = this.part;
    const tail = this.liveTail?.text ?? ui.tail ?? '';
    const content = isLive(this.part) ? tail : shownOutput(this.part) || (state.status === 'completed' ? '' : tail);
    return !isLive(this.part) && content === state.error ? '' : content.replace(/\n+$/, '');
  }

  private drawOutput(running: boolean): void {
    const { state, ui } = this.part;
    let content = this.output();
    const lines = this.liveTail?.lines ?? ui.lines;
    const bytes = this.liveTail?.bytes ?? ui.bytes;
    const { printed } = ui;
    let folded = !running && (repeatsOutput(ui) || (this.nested && state.status === 'completed')) ? content : '';
    content = folded ? '' : content;
    if (!running && printed !== undefined && !state.error) {
      folded = shownOutput(this.part).replace(/\n+$/, '');
      content = printed.replace(/\n+$/, '');
      this.bodies.nodes[0].before(this.text.node); // what was printed, then what was shown
    }
    this.foot.update(this.part, folded, running && (lines || bytes) ? extent(lines, bytes) : '');
    this.drawBox(this.text, content, text => {
      // a person who scrolled up keeps the place; otherwise the newest line stays in view
      const { scrollTop } = text;
      const follow = running && text.scrollHeight - scrollTop - text.clientHeight < 8;
      drawOutput(text, content);
      text.scrollTop = follow ? text.scrollHeight : scrollTop;
    });
  }

  private drawChildren(parts: CardPart[]): void {
    show(this.childList, parts.length > 0);
    const gone = new Set(this.children.keys());
    let before: HTMLElement | undefined;
    const entries = parts.map((part, index) => {
      const key = part.id || part.callID || String(index);
      gone.delete(key);
      let root = this.children.get(key);
      if (!root) {
        root = el('div');
        this.children.set(key, root);
      }
      if (!root.parentNode || before?.nextElementSibling !== root) {
        this.insertChild(root, before);
      }
      before = root;
      renderCard(root, part, this.callbacks, true);
      return { node: root, settled: !isLive(part) && stateWords(part).tone === 'ok' ? part.tool : undefined };
    });
    for (const key of gone) {
      const root = this.children.get(key) as HTMLElement;
      disposeCard(root);
      root.remove();
      this.children.delete(key);
    }
    if (parts.length) {
      this.folds.update(entries);
    }
  }

  /** Puts a child behind the one before it, if it does not stand there but for a line that folds. */
  private insertChild(root: HTMLElement, before: HTMLElement | undefined): void {
    const previous = root.previousElementSibling;
    const real = previous?.classList.contains('oc-fold') ? previous.previousElementSibling : previous;
    if (root.parentNode && (real ?? undefined) === before) {
      return;
    }
    if (before) {
      before.after(root);
    } else {
      this.childList.prepend(root);
    }
  }

  private drawRequest(running: boolean): void {
    const { ask, question } = running ? this.part.ui : {};
    const key = ask ? ApprovalView.keyOf(ask) : question && QuestionView.keyOf(question);
    if (key !== undefined && this.request?.key === key) {
      if (this.request instanceof ApprovalView) {
        ask && this.request.update(ask);
      } else {
        question && this.request.update(question);
      }
      return;
    }
    const focused = this.request !== undefined && hasFocus(this.request.node);
    this.request?.dispose();
    this.request?.node.remove();
    this.request = ask ? new ApprovalView(ask, this.callbacks, this.part.state.input, this.part.ui.by === 'model') : question && new QuestionView(question, this.callbacks);
    if (this.request) {
      this.cut.before(this.request.node);
    }
    // read when the card gets the focus, before any of its buttons
    const requestText = this.request?.node.querySelector('.oc-question')?.textContent;
    if (requestText) {
      this.card.setAttribute('aria-description', requestText);
    } else {
      this.card.removeAttribute('aria-description');
    }
    // JupyterLab's own keys (1 makes a heading of the cell) stay away while 1, 2, 3 mean an answer
    this.card.toggleAttribute('data-lm-suppress-shortcuts', !!this.request && !!(this.callbacks.reply ?? this.callbacks.answer));
    if (focused) {
      this.card.focus({ preventScroll: true });
    }
  }

  private pressKey(event: KeyboardEvent): void {
    const target = event.composedPath()[0] as HTMLElement;
    const { tagName } = target;
    const typing = tagName === 'TEXTAREA' || (tagName === 'INPUT' && (target as HTMLInputElement).type === 'text');
    const own = event.key === 'Enter' && (tagName === 'BUTTON' || tagName === 'SUMMARY' || tagName === 'A');
    const inside = target.closest('.oc-card') !== this.card;
    const details = target.closest<HTMLDetailsElement>('details[open]');
    if (event.key === 'Escape' && !inside && details && this.card.contains(details)) {
      // closes what is open, and denies nothing
      details.open = false;
      details.querySelector('summary')?.focus({ preventScroll: true });
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (!this.request || inside || own || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) {
      return;
    }
    const types = typing && !(this.request instanceof QuestionView && event.key === 'Enter');
    if (types || this.request.press(event.key, target)) {
      event.stopPropagation();
      types || event.preventDefault();
    }
  }
}
