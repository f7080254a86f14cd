/** The few DOM moves a card needs. Text goes in as text nodes only. */

/** A new element with a class and, if given, text. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = '',
  text = ''
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  if (className) {
    node.className = className;
  }
  if (text) {
    node.textContent = text;
  }
  return node;
}

/** Sets `node`'s text if it differs, so that an unchanged text is not announced or repainted. */
export function setText(node: HTMLElement, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

/** Shows or hides `node`. */
export function show(node: HTMLElement, on: boolean): void {
  if (node.hidden === on) {
    node.hidden = !on;
  }
}

/** Tells a screen reader what `node` is and what it is called. */
export function setRole(node: HTMLElement, role: string, name: string): void {
  node.setAttribute('role', role);
  node.setAttribute('aria-label', name);
}

/** The same of what scrolls: it takes the focus, so that the keyboard can scroll it. */
export function scrollBox(node: HTMLElement, name: string, role = 'group'): void {
  node.tabIndex = 0;
  setRole(node, role, name);
}

/** A key's hint. The style sheet writes it, since a button's name has to hold all of the button's text. */
export function keyHint(key: string): HTMLElement {
  const hint = el('kbd');
  hint.dataset.key = key;
  hint.setAttribute('aria-hidden', 'true');
  return hint;
}

/** A button with its key's hint; the hint is no part of its accessible name. */
export function button(name: string, key: string, className: string, press: () => void): HTMLButtonElement {
  const node = el('button', className, name);
  node.type = 'button';
  if (key) {
    node.append(' ', keyHint(key));
    node.setAttribute('aria-keyshortcuts', key);
  }
  node.setAttribute('aria-label', name);
  node.addEventListener('click', press);
  return node;
}

/** Calls `enter` or `escape` at these keys in a text field, in place of what they usually do; not while a word is composed. */
export function onEnterEscape(field: HTMLElement, enter: (event: KeyboardEvent) => void, escape: () => void): void {
  field.addEventListener('keydown', event => {
    const act = event.isComposing ? undefined : { Enter: enter, Escape: escape }[event.key];
    if (act) {
      event.preventDefault();
      act(event);
    }
  });
}

/** The state of something: a mark, which only repeats what the word says. */
export class StateMark {
  readonly node = el('span', 'oc-shape');
  private readonly mark = el('span', 'oc-mark');
  private readonly word = el('span', 'oc-state');

  /** @param spoken - A screen reader tells its changes. */
  constructor(spoken: boolean) {
    this.mark.setAttribute('aria-hidden', 'true');
    if (spoken) {
      this.word.setAttribute('role', 'status');
      this.word.setAttribute('aria-live', 'polite');
    }
    this.node.append(this.mark, this.word);
  }

  update(mark: string, word: string): void {
    setText(this.mark, mark);
    setText(this.word, word);
  }
}

/** Whether the focus is in `node`, also inside a shadow tree. */
export function hasFocus(node: HTMLElement): boolean {
  const root = node.getRootNode() as Document | ShadowRoot;
  const active = root.activeElement ?? null;
  return active !== null && node.contains(active);
}

/** `url` if a link may point there (http, https or relative to this page), else nothing. */
export function safeLink(url: string | undefined): string | undefined {
  if (!url) {
    return undefined;
  }
  try {
    const { protocol } = new URL(url, document.baseURI);
    return protocol === 'http:' || protocol === 'https:' ? url : undefined;
  } catch {
    return undefined;
  }
}

const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+$/;

/** Whether `url` is a picture that may be shown: inline, and of a kind that can't carry code. */
export function safePicture(url: string): boolean {
  return PICTURE.test(url);
}
