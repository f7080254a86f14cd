/** Copying to the clipboard, with a word about how it went. */

import { trans } from './i18n';
import { button, el, scrollBox, setText } from './dom';

/** How long a button says that it copied. */
const CONFIRMED_MS = 1_500;

/** Puts `text` on the clipboard; false where the page may not. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // without https, or in a frame that may not: the old way
    const field = el('textarea');
    field.value = text;
    field.style.cssText = 'position:fixed;opacity:0';
    const before = document.activeElement as HTMLElement | null;
    document.body.append(field);
    field.select();
    const copied = document.execCommand?.('copy') ?? false;
    field.remove();
    before?.focus?.({ preventScroll: true });
    return copied;
  }
}

/** A button `label` that copies what `text` gives when it is pressed, and then says so. `name` says what is copied. */
export function copyButton(label: string, name: string, className: string, text: () => string, failed?: () => void): HTMLButtonElement {
  const say = (words: string, all: string): void => {
    setText(made, words);
    made.setAttribute('aria-label', all);
  };
  const made = button(label, '', className, () => {
    void copyText(text()).then(copied => {
      if (!copied) {
        failed?.();
      }
      const words = copied ? trans.__('Copied') : trans.__('Could not copy');
      say(words, words);
      setTimeout(() => say(label, name), CONFIRMED_MS);
    });
  });
  made.setAttribute('aria-label', name);
  return made;
}

/** A block of text with a Copy button in its corner, which shows when the block is pointed at or has the focus. */
export class CopyBox {
  readonly node = el('div', 'oc-box');
  private copy: HTMLButtonElement | undefined;

  /**
   * @param inner - The block.
   * @param name - What the button copies, as its name: `Copy output`.
   * @param text - What that is.
   */
  constructor(
    readonly inner: HTMLElement,
    private readonly name: string,
    private readonly text: () => string
  ) {
    this.node.append(inner);
  }

  /** Makes the button, once there is something to copy. */
  ready(): void {
    if (!this.copy) {
      this.copy = copyButton(trans.__('Copy'), this.name, 'oc-button oc-small oc-copy', this.text);
      this.node.append(this.copy);
    }
  }
}

/** Such a block, `name` for a screen reader. */
export function textBox(className: string, name: string, copy: string, text: () => string): CopyBox {
  const inner = el('pre', `oc-pre ${className}`.trim());
  scrollBox(inner, name);
  return new CopyBox(inner, copy, text);
}
