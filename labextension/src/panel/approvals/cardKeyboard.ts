/**
 * The keyboard in cards of a notebook: keys pressed there are the card's and not the notebook's, and the focus does not
 * fall out of the page when what had it goes away (a request that was answered, a live card that became a settled one).
 */

import { GUARD } from '../../card/requestView';

/** Lumino runs no shortcut where this stands on the target or around it. */
const SUPPRESS = 'data-lm-suppress-shortcuts';
/** How long after a change it takes the browser to notice that what had the focus is hidden, in milliseconds. */
const FIXED_MS = 50;
/** A request that the same cell makes within this time takes the focus that was given back to the cell. */
const NEXT_MS = 2_000;
const CARD = '.oc-card';
/** A card that is in no other. */
const OUTERMOST = `${CARD}:not(${CARD} ${CARD})`;

function isPlain({ ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  return !ctrlKey && !metaKey && !altKey;
}

/** Keys that were pressed in a card, and are no shortcut with Ctrl, Alt or Meta, do not reach JupyterLab. */
function ownKeys(event: KeyboardEvent): void {
  const target = event.composedPath()[0];
  const card = target instanceof Element ? target.closest(CARD) : null;
  if (!card || !(target instanceof Element)) {
    return;
  }
  // with the card itself in focus and nothing asked, arrows go from cell to cell as ever
  const isOwn = isPlain(event) && (target !== card || card.querySelector('.oc-ask') !== null || /^\d$/.test(event.key));
  // Lumino takes the first element from the target outwards that one of its selectors fits, so the target needs it too
  target.toggleAttribute(SUPPRESS, isOwn);
  for (let outer: Element | null = card; outer; outer = outer.parentElement?.closest(CARD) ?? null) {
    outer.toggleAttribute(SUPPRESS, isOwn);
  }
}

/** What a press answers or opens; a text field is none of it. */
const PRESSED = 'button, summary, label, input[type="radio"], input[type="checkbox"]';

/** What a person types into. */
const TYPED = 'input[type="text"], textarea';

/**
 * A press on a button or an option in a card moves neither the focus, nor the notebook's active cell, nor what is in
 * view: it is the person's answer, and they go on where they were. A text field takes the focus alone.
 */
function keepPlace(event: MouseEvent): void {
  const target = event.composedPath()[0];
  if (!(target instanceof Element) || !target.closest(`.jp-Notebook ${CARD}`)) {
    return;
  }
  if (target.matches(TYPED)) {
    event.stopPropagation();
  } else if (event.button === 0 && target.closest(PRESSED)) {
    event.preventDefault();
    event.stopPropagation();
  }
}

/** A click on an option's label gives the focus to its box, whatever became of the press; a click on the box does not. */
function keepFocus(event: MouseEvent): void {
  const target = event.composedPath()[0];
  const label = target instanceof Element ? target.closest<HTMLLabelElement>(`.jp-Notebook ${CARD} label`) : null;
  if (label?.control && target !== label.control) {
    event.preventDefault();
    label.control.click();
  }
}

/** Escape leaves a card without a request for its cell. */
function leave(event: KeyboardEvent): void {
  const target = event.composedPath()[0];
  const card = target instanceof Element ? target.closest(CARD) : null;
  if (event.key === 'Escape' && !event.defaultPrevented && card && !card.querySelector('.oc-ask')) {
    card.closest<HTMLElement>('.jp-Cell')?.focus({ preventScroll: true });
  }
}

/**
 * The focus in a card leaves the notebook's active cell as it is. The notebook makes the cell of whatever gets the focus
 * the active one, so it sees no more than the focus leaving an editor: it goes to command mode, and its own shortcuts
 * are off while the person types.
 */
function keepActive(event: FocusEvent): void {
  const { target } = event;
  if (target instanceof Element && target.closest(`.jp-Notebook ${CARD}`)) {
    event.stopPropagation();
    target.dispatchEvent(new FocusEvent('focusout', { bubbles: true, relatedTarget: target }));
    target.closest<HTMLElement>(OUTERMOST)?.addEventListener('keydown', keepKeys);
  }
}

/** At a key the notebook would take the focus back to its active cell. The page's shortcuts (palette, save) still work. */
function keepKeys(event: KeyboardEvent): void {
  const { currentTarget: card, target } = event;
  const panel = card instanceof Element && !card.closest('.jp-mod-active') ? card.closest('.jp-Notebook')?.parentElement : null;
  const isOwn = target instanceof Element && target.hasAttribute(SUPPRESS);
  if (!panel || (!isOwn && isPlain(event))) {
    return;
  }
  leave(event);
  event.stopPropagation();
  if (!isOwn && !panel.dispatchEvent(new KeyboardEvent(event.type, event))) {
    event.preventDefault();
  }
}

/** Gives `card` the focus without the person having asked for it: a key meant for what was there answers nothing. */
export function focusGuarded(card: HTMLElement): void {
  card.querySelectorAll('.oc-ask').forEach(ask => ask.dispatchEvent(new Event(GUARD)));
  card.focus({ preventScroll: true });
}

/** Watches the outputs of the cell in which the focus is in a card. */
class FocusKeeper {
  private area: Element | undefined;
  private outer: HTMLElement | null = null;
  /** The cell that got the focus back, and until when its next request takes it. */
  private returned: { cell: Element; until: number } | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly observer = new MutationObserver(() => {
    this.timer ??= setTimeout(() => this.look(), FIXED_MS);
  });

  /** The focus came to `target`. */
  focus(target: Element): void {
    if (target === this.returned?.cell) {
      return;
    }
    this.returned = undefined;
    const area = target.closest(CARD) ? (target.closest('.jp-Cell-outputArea') ?? undefined) : undefined;
    this.outer = target.closest<HTMLElement>(OUTERMOST);
    if (area !== this.area) {
      this.observer.disconnect();
      this.area = area;
      if (area) {
        this.observer.observe(area, { childList: true, subtree: true, attributeFilter: ['open', 'hidden', 'class'] });
      }
    }
  }

  private look(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { area, returned } = this;
    const active = document.activeElement;
    const isOver = returned && (active !== returned.cell || Date.now() > returned.until);
    if (!area?.isConnected || isOver) {
      this.stop();
      return;
    }
    if (!returned && active && active !== document.body) {
      return;
    }
    const next = [...area.querySelectorAll('.oc-ask')].find(ask => ask.querySelector('.oc-go'))?.closest<HTMLElement>(CARD);
    if (next) {
      focusGuarded(next);
    } else if (!returned && this.outer?.isConnected) {
      this.outer.focus({ preventScroll: true });
    } else if (!returned) {
      const cell = area.closest('.jp-Notebook')?.querySelector<HTMLElement>('.jp-Cell.jp-mod-active') ?? area.closest<HTMLElement>('.jp-Cell');
      if (cell) {
        this.returned = { cell, until: Date.now() + NEXT_MS };
        cell.focus({ preventScroll: true });
      }
    }
  }

  private stop(): void {
    this.observer.disconnect();
    this.area = this.returned = undefined;
  }
}

/** What takes the focus only for a moment, to choose a command. */
const PASSING = '.lm-CommandPalette, .lm-Menu, .lm-MenuBar';
let lastCard: HTMLElement | null = null;

/** The card that the focus is in, the innermost around it; also while the palette or a menu has it. */
export function focusedCard(): HTMLElement | null {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) {
    active = active.shadowRoot.activeElement;
  }
  const card = active?.closest<HTMLElement>('.oc-card[data-call]') ?? null;
  const passing = !active || active === document.body || active.closest(PASSING);
  return card ?? (passing && lastCard?.isConnected ? lastCard : null);
}

/** Handles the keyboard and the focus in the page's cards from now on. */
export function handleCardKeyboard(): void {
  const keeper = new FocusKeeper();
  // before Lumino's own listener, which is the document's
  window.addEventListener('keydown', ownKeys, true);
  // of the document, so that an open menu still closes
  document.addEventListener('mousedown', keepPlace, true);
  document.addEventListener('click', keepFocus, true);
  document.addEventListener('keydown', leave);
  const capture = true; // before the notebook
  document.addEventListener(
    'focusin',
    event => {
      const { target } = event;
      if (target instanceof Element) {
        keeper.focus(target);
        if (!target.closest(PASSING)) {
          lastCard = target.closest<HTMLElement>('.oc-card[data-call]');
        }
      }
      keepActive(event);
    },
    capture
  );
  document.addEventListener('focusout', ({ target, relatedTarget }) => {
    // a click beside everything; not the palette's end, nor another window
    if (!relatedTarget && document.hasFocus() && target instanceof Element && !target.closest(PASSING)) {
      lastCard = null;
    }
  });
}
