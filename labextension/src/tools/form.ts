/** The fields of a form: drawn, read, and told what is wrong with them. */

import { button, el, setText, show } from '../card/dom';
import { trans } from '../i18n';
import type { Field } from './schema';
import type { Problem, Typed } from './values';

let made = 0;

/** One field on the page. */
export abstract class Editor {
  readonly node: HTMLElement;
  protected readonly id = `oc-field-${++made}`;
  private readonly error = el('p', 'oc-field-error');

  constructor(
    readonly field: Field,
    tag: 'div' | 'fieldset'
  ) {
    this.node = el(tag, 'oc-field');
    this.error.id = `${this.id}-error`;
    this.error.hidden = true;
  }

  /** What was typed; nothing where it is left open. */
  abstract typed(): Typed;
  /** Gives the focus to its box. */
  abstract focus(): void;
  /** The boxes that belong to what is wrong with it. */
  protected abstract boxes(): HTMLElement[];

  /** Tells what is wrong, and takes away what was said before. Gives the editor of the first problem. */
  tell(problems: readonly Problem[], depth: number): Editor | undefined {
    const own = problems.filter(({ path }) => path.length <= depth || !this.inner().length);
    setText(this.error, own.map(({ message }) => message).join(' '));
    show(this.error, own.length > 0);
    for (const box of this.boxes()) {
      box.setAttribute('aria-invalid', String(own.length > 0));
    }
    let first: Editor | undefined = own.length ? this : undefined;
    for (const [key, editor] of this.inner()) {
      const under = problems.filter(({ path }) => path.length > depth && path[depth] === key);
      first = editor.tell(under, depth + 1) ?? first;
    }
    return first;
  }

  /** The editors inside, by name or place. */
  protected inner(): [string | number, Editor][] {
    return [];
  }

  /** The name, what it is for, and what is taken where it is left open. */
  protected head(name: string, tag: 'label' | 'legend' | 'span'): void {
    const { field } = this;
    const label = el(tag, 'oc-field-name', name);
    if (label instanceof HTMLLabelElement) {
      label.htmlFor = this.id;
    }
    if (field.required && name) {
      label.append(el('span', 'oc-field-required', ` (${trans.__('required')})`));
    }
    const words = [field.description];
    if (field.fallback !== undefined && field.fallback !== null) {
      words.push(trans.__('Default: %1', JSON.stringify(field.fallback)));
    }
    const said = el('p', 'oc-field-said', words.filter(Boolean).join(' · '));
    said.id = `${this.id}-said`;
    said.hidden = !said.textContent;
    this.node.append(label, said);
  }

  protected describe(box: HTMLElement): void {
    box.id = this.id;
    box.setAttribute('aria-describedby', `${this.id}-said ${this.id}-error`);
    if (this.field.required) {
      box.setAttribute('aria-required', 'true');
    }
  }

  protected end(...nodes: HTMLElement[]): void {
    this.node.append(...nodes, this.error);
  }
}

/** Text, numbers, and JSON: a box to type in. */
class BoxEditor extends Editor {
  private readonly box: HTMLTextAreaElement | HTMLInputElement;
  private readonly empty = el('input');

  constructor(field: Field, name: string) {
    super(field, 'div');
    this.head(name, 'label');
    const { kind } = field;
    if (kind === 'number' || kind === 'integer') {
      this.box = el('input', 'oc-panel-input');
      this.box.inputMode = kind === 'integer' ? 'numeric' : 'decimal';
    } else {
      this.box = el('textarea', 'oc-panel-input');
      const { box } = this;
      box.rows = kind === 'json' ? 2 : 1;
      box.addEventListener('input', () => (box.rows = Math.min(12, Math.max(kind === 'json' ? 2 : 1, box.value.split('\n').length))));
    }
    this.box.spellcheck = false;
    this.box.placeholder = kind === 'json' ? trans.__('JSON: %1', field.type) : '';
    this.describe(this.box);
    if (!name) {
      this.box.setAttribute('aria-label', trans.__('Item'));
    }
    this.end(this.box);
    if (kind === 'text' && field.required) {
      this.empty.type = 'checkbox';
      const label = el('label', 'oc-field-empty');
      label.append(this.empty, ` ${trans.__('leave it empty')}`);
      this.box.addEventListener('input', () => show(label, this.box.value === ''));
      this.node.append(label);
    }
  }

  typed(): Typed {
    const { value } = this.box;
    if (this.field.kind === 'text') {
      return value === '' && !this.empty.checked ? undefined : value;
    }
    return value.trim() === '' ? undefined : value;
  }

  focus(): void {
    this.box.focus();
  }

  protected boxes(): HTMLElement[] {
    return [this.box];
  }
}

/** A value to choose: one of a list, or yes and no. */
class ChoiceEditor extends Editor {
  private readonly box = el('select', 'oc-panel-select');

  constructor(field: Field, name: string) {
    super(field, 'div');
    this.head(name, 'label');
    const values = field.kind === 'boolean' ? (['true', 'false'] as const).map(one => [one, one]) : field.choices.map((one, at) => [String(at), typeof one === 'string' ? one : JSON.stringify(one)]);
    this.box.append(new Option('', ''), ...values.map(([value, label]) => new Option(label || '""', value)));
    this.describe(this.box);
    if (!name) {
      this.box.setAttribute('aria-label', trans.__('Item'));
    }
    this.end(this.box);
  }

  typed(): Typed {
    return this.box.value || undefined;
  }

  focus(): void {
    this.box.focus();
  }

  protected boxes(): HTMLElement[] {
    return [this.box];
  }
}

/** Items, each with a box of its own. */
class ListEditor extends Editor {
  private items: Editor[] = [];
  private readonly rows = el('ol', 'oc-field-items');
  private readonly more: HTMLButtonElement;

  constructor(field: Field, name: string) {
    super(field, 'fieldset');
    this.head(name, 'legend');
    this.more = button(trans.__('Add an item'), '', 'oc-panel-button', () => this.add());
    this.more.setAttribute('aria-label', name ? trans.__('Add an item to %1', name) : trans.__('Add an item'));
    this.end(this.rows, this.more);
  }

  typed(): Typed {
    return this.items.map(item => item.typed());
  }

  focus(): void {
    (this.items[0] ?? { focus: () => this.more.focus() }).focus();
  }

  protected boxes(): HTMLElement[] {
    return [];
  }

  protected inner(): [string | number, Editor][] {
    return this.items.map((item, at) => [at, item]);
  }

  private add(): void {
    const item = editorOf(this.field.item as Field, '');
    const row = el('li');
    const remove = button(trans.__('Remove'), '', 'oc-panel-button', () => {
      this.items = this.items.filter(one => one !== item);
      row.remove();
      this.more.focus();
    });
    row.append(item.node, remove);
    this.items.push(item);
    this.rows.append(row);
    item.focus();
  }
}

/** Fields inside a field. */
class ObjectEditor extends Editor {
  private readonly members: Editor[];

  constructor(field: Field, name: string) {
    super(field, 'fieldset');
    this.head(name, 'legend');
    this.members = field.fields.map(one => editorOf(one, one.name));
    this.end(...this.members.map(({ node }) => node));
  }

  typed(): Typed {
    return Object.fromEntries(this.members.map(one => [one.field.name, one.typed()]));
  }

  focus(): void {
    this.members[0]?.focus();
  }

  protected boxes(): HTMLElement[] {
    return [];
  }

  protected inner(): [string | number, Editor][] {
    return this.members.map(one => [one.field.name, one]);
  }
}

/** The editor of a field under `name`; an item of a list has none. */
export function editorOf(field: Field, name: string): Editor {
  switch (field.kind) {
    case 'boolean':
    case 'choice':
      return new ChoiceEditor(field, name);
    case 'list':
      return new ListEditor(field, name);
    case 'object':
      return new ObjectEditor(field, name);
    default:
      return new BoxEditor(field, name);
  }
}

/** All fields of a tool. */
export class Fields {
  readonly node = el('div', 'oc-fields');
  private readonly editors: Editor[];

  constructor(fields: readonly Field[]) {
    this.editors = fields.map(field => editorOf(field, field.name));
    this.node.append(...this.editors.map(({ node }) => node));
  }

  typed(): Record<string, Typed> {
    return Object.fromEntries(this.editors.map(editor => [editor.field.name, editor.typed()]));
  }

  /** Tells what is wrong beside the fields, and goes to the first of them. Gives what belongs to no field. */
  tell(problems: readonly Problem[]): Problem[] {
    let first: Editor | undefined;
    for (const editor of this.editors) {
      const found = editor.tell(problems.filter(({ path }) => path[0] === editor.field.name), 1);
      first ??= found;
    }
    first?.focus();
    return problems.filter(({ path }) => !this.editors.some(({ field }) => field.name === path[0]));
  }
}
