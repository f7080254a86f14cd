/** Other arguments for a call that waits for approval: one field for each, texts as they are, all else as JSON. */

import { trans } from './i18n';
import { button, el, setRole, setText } from './dom';
import { errorMessage, visibleLine } from './format';

/** A field's text for `value`. */
export function fieldText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 1);
}

/** The value that a field's text stands for, where `before` was the value. Throws where it is no JSON. */
export function fieldValue(text: string, before: unknown): unknown {
  return typeof before === 'string' ? text : (JSON.parse(text) as unknown);
}

/** The form. It stays until its owner takes it away. */
export class ReviseForm {
  readonly node = el('div', 'oc-step');
  readonly controls: HTMLButtonElement[] = [];
  private readonly fields = new Map<string, HTMLTextAreaElement>();
  private readonly note = el('div', 'oc-note');

  /**
   * @param send - Sends the new arguments; rejected with words for a person when they do not fit.
   * @param back - Leaves the form.
   */
  constructor(
    private readonly input: Record<string, unknown>,
    private readonly send: (input: Record<string, unknown>) => Promise<void>,
    private readonly back: () => void
  ) {
    const group = el('div', 'oc-patterns');
    setRole(group, 'group', trans.__('Arguments'));
    group.append(el('div', 'oc-why', trans.__('Running the changed call approves it. You are asked again only if a rule treats it differently.')));
    for (const [name, value] of Object.entries(input)) {
      const label = el('label', 'oc-field');
      const field = el('textarea', 'oc-word');
      field.value = fieldText(value);
      field.rows = Math.min(12, field.value.split('\n').length);
      field.spellcheck = false;
      field.addEventListener('keydown', event => this.press(event));
      label.append(el('span', 'oc-why', visibleLine(name)), field);
      this.fields.set(name, field);
      group.append(label);
    }
    this.note.setAttribute('role', 'alert');
    const row = el('div', 'oc-buttons');
    const run = button(trans.__('Run with these changes'), '', 'oc-button oc-go', () => void this.submit());
    const leave = button(trans.__('Back'), '', 'oc-button', back);
    row.append(run, leave);
    this.controls.push(run, leave);
    this.node.append(group, row, this.note);
  }

  /** Gives the focus to the first field. */
  focus(): void {
    this.fields.values().next().value?.focus({ preventScroll: true });
  }

  private press(event: KeyboardEvent): void {
    if (event.isComposing) {
      return;
    }
    if (event.key === 'Escape') {
      event.preventDefault();
      this.back();
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void this.submit();
    }
  }

  private async submit(): Promise<void> {
    const changed: Record<string, unknown> = {};
    for (const [name, field] of this.fields) {
      try {
        changed[name] = fieldValue(field.value, this.input[name]);
      } catch {
        setText(this.note, trans.__('%1 is not valid JSON.', visibleLine(name)));
        field.focus();
        return;
      }
    }
    setText(this.note, trans.__('Sent…'));
    try {
      await this.send(changed);
      setText(this.note, '');
    } catch (error) {
      setText(this.note, errorMessage(error));
    }
  }
}
