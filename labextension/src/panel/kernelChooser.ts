/** Which notebook's kernel a section is about: the one in front at first, then what the person chooses. */

import { el, setText, show } from '../card/dom';
import { visibleLine } from '../card/format';
import { trans } from '../card/i18n';
import type { KernelHub, OpenKernel, PanelRequest } from '../kernel/hub';

/** Fills a list to choose from, keeping what is chosen; nothing happens where it offers the same already. */
export function offer(node: HTMLSelectElement, found: readonly (readonly [value: string, label: string])[]): void {
  const wanted = JSON.stringify(found);
  if (node.dataset.offered !== wanted) {
    const { value } = node;
    node.dataset.offered = wanted;
    node.replaceChildren(...found.map(([one, label]) => new Option(visibleLine(label), one)));
    node.value = found.some(([one]) => one === value) ? value : (found[0]?.[0] ?? '');
  }
}

/** A field with its name in front. */
export function labelled(name: string, field: HTMLElement): HTMLLabelElement {
  const label = el('label', 'oc-panel-label');
  // else the name would be told with all that there is to choose
  field.setAttribute('aria-label', name);
  label.append(el('span', '', name), field);
  return label;
}

/** The list of notebooks with a kernel of ours, and the line that says why there is nothing to see. */
export class Chooser {
  readonly node = el('div', 'oc-panel-choose');
  private readonly select = el('select', 'oc-panel-select');
  private readonly trouble = el('p', 'oc-panel-empty');
  private chosen = '';
  /** The id of the kernel whose answer is shown; "": none. */
  shown = '';

  constructor(
    private readonly hub: Pick<KernelHub, 'kernels' | 'current' | 'request'>,
    change: () => void
  ) {
    this.select.setAttribute('aria-label', trans.__('Notebook'));
    this.select.addEventListener('change', () => {
      this.chosen = this.select.value;
      change();
    });
    this.trouble.setAttribute('role', 'status');
    this.node.append(this.select, this.trouble);
  }

  /** The kernel that is chosen; nothing where none has our extension. */
  kernel(): OpenKernel | undefined {
    const kernels = this.hub.kernels();
    const front = this.hub.current();
    if (!kernels.some(({ id }) => id === this.chosen)) {
      this.chosen = '';
    }
    const found = kernels.find(({ id }) => id === this.chosen) ?? front ?? kernels[0];
    const inOrder = front ? [front, ...kernels.filter(({ id }) => id !== front.id)] : kernels;
    offer(this.select, inOrder.map(({ id, name }) => [id, name] as const));
    this.select.value = found?.id ?? '';
    show(this.select, kernels.length > 1);
    return found;
  }

  /**
   * Requests what a section shows of the chosen kernel.
   *
   * @param clear - is called first where another kernel was shown before.
   * @returns false where the kernel did not answer.
   */
  async read<T>(request: () => PanelRequest, draw: (reply: T) => void, clear: () => void): Promise<boolean> {
    const kernel = this.kernel();
    if (this.shown !== (kernel?.id ?? '')) {
      this.shown = kernel?.id ?? '';
      clear();
    }
    if (!kernel) {
      this.say(trans.__('No open notebook has the tools loaded. Run %1 in one.', '%load_ext opencode_jupyter'));
      return true;
    }
    try {
      const reply = await this.hub.request<T>(kernel.id, request());
      if (kernel.id === this.shown) {
        this.say('');
        draw(reply);
      }
      return true;
    } catch (error) {
      this.say(wordsOf(error));
      return false;
    }
  }

  /** Says why there is nothing to see; "" where there is. */
  say(words: string): void {
    setText(this.trouble, words);
    show(this.trouble, words !== '');
  }
}

/** An error's words for a person. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Rows of a list that stay while what they show does, so that the focus does. */
export class KeyedRows<Item, Row extends { node: HTMLElement; dispose?(): void }> {
  private readonly rows = new Map<string, Row>();

  constructor(
    private readonly list: HTMLElement,
    private readonly key: (item: Item) => string,
    private readonly make: (item: Item) => Row
  ) {}

  get(key: string): Row | undefined {
    return this.rows.get(key);
  }

  /** Has one row for each item, in their order, brought up to date by `fill`. */
  update(items: readonly Item[], fill: (row: Row, item: Item) => void): void {
    const keys = new Set(items.map(this.key));
    for (const [key, row] of this.rows) {
      if (!keys.has(key)) {
        row.dispose?.();
        row.node.remove();
        this.rows.delete(key);
      }
    }
    items.forEach((item, at) => {
      const key = this.key(item);
      const row = this.rows.get(key) ?? this.make(item);
      this.rows.set(key, row);
      fill(row, item);
      if (this.list.children[at] !== row.node) {
        this.list.insertBefore(row.node, this.list.children[at] ?? null);
      }
    });
  }
}
