/** What the panel's sections are built of: lists to choose from, fields, forms, lines that report, lists of rows. */

import { button, el } from '../card/dom';
import { visibleLine } from '../card/format';

/** A list to choose one value from. */
export function select(name: string, change: () => void): HTMLSelectElement {
  const node = el('select', 'oc-panel-select');
  node.setAttribute('aria-label', name);
  node.addEventListener('change', change);
  return node;
}

/** Fills a list to choose from, keeping what is chosen; nothing happens where it offers the same already. */
export function offer(node: HTMLSelectElement, options: readonly (readonly [value: string, label: string])[]): void {
  const json = JSON.stringify(options);
  if (node.dataset.offered !== json) {
    const { value } = node;
    node.dataset.offered = json;
    node.replaceChildren(...options.map(([choice, label]) => new Option(visibleLine(label), choice)));
    node.value = options.some(([choice]) => choice === value) ? value : (options[0]?.[0] ?? '');
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

/** A field to filter by. */
export function searchField(name: string, change: () => void): HTMLInputElement {
  const field = el('input', 'oc-panel-input');
  field.type = 'search';
  field.placeholder = name;
  field.setAttribute('aria-label', name);
  field.addEventListener('input', change);
  return field;
}

/** Fields with a button that submits them. */
export function form(className: string, fields: HTMLElement[], name: string, submit: () => void): HTMLFormElement {
  const node = el('form', className);
  const send = button(name, '', 'oc-panel-button', () => undefined);
  send.type = 'submit';
  node.addEventListener('submit', event => {
    event.preventDefault();
    submit();
  });
  node.append(...fields, send);
  return node;
}

/** A line that reports what happened, to a screen reader too. */
export function statusLine(className = 'oc-panel-said'): HTMLParagraphElement {
  const node = el('p', className);
  node.setAttribute('role', 'status');
  return node;
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
