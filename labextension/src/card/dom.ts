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
