/** The viewer's buttons, and its words on where one is and what goes on. */

import { button, el, onEnterEscape, setText } from '../card/dom';
import { trans } from '../card/i18n';

/** What the buttons do. */
export interface ToolbarActions {
  start(): void;
  end(): void;
  line(line: number): void;
  /** Given up: back to the text. */
  back(): void;
  follow(): void;
  wrap(): void;
  find(): void;
  copy(): void;
  download(): void;
}

export class Toolbar {
  readonly node = el('div', 'oc-pages-bar');
  readonly follow: HTMLButtonElement;
  readonly wrap: HTMLButtonElement;
  readonly download: HTMLButtonElement;
  private readonly field = el('input', 'oc-line');
  private readonly position = el('span', 'oc-place');
  private readonly state = el('span', 'oc-writing');
  private readonly message = el('span', 'oc-said-now');

  constructor(acts: ToolbarActions) {
    const action = (name: string, key: string, press: () => void): HTMLButtonElement => {
      const made = button(name, '', 'oc-button', press);
      made.setAttribute('aria-keyshortcuts', key);
      return made;
    };
    const toggle = (name: string, press: () => void): HTMLButtonElement => {
      const made = button(name, '', 'oc-button oc-toggle', press);
      setPressed(made, false);
      return made;
    };
    const label = el('label', '', `${trans.__('Line')} `);
    this.field.type = 'number';
    this.field.placeholder = trans.__('Line'); // a narrow toolbar hides the label
    this.field.min = '1';
    onEnterEscape(this.field, () => this.field.value && acts.line(Math.max(1, Math.floor(Number(this.field.value)))), acts.back);
    label.append(this.field);
    this.follow = toggle(trans.__('Follow'), acts.follow);
    this.follow.title = trans.__('Follow new output as it is written');
    this.wrap = toggle(trans.__('Wrap'), acts.wrap);
    const copy = button(trans.__('Copy'), '', 'oc-button', acts.copy);
    // in a dialog, a press on a button takes away what is chosen in the text
    copy.addEventListener('mousedown', event => event.preventDefault());
    this.download = button(trans.__('Download'), '', 'oc-button', acts.download);
    this.state.setAttribute('role', 'status');
    this.message.setAttribute('role', 'status');
    this.node.append(
      action(trans.__('Start'), 'Home', acts.start),
      action(trans.__('End'), 'End', acts.end),
      label,
      action(trans.__('Find'), 'Control+F', acts.find),
      this.follow,
      this.wrap,
      copy,
      this.download,
      this.message,
      this.state,
      this.position
    );
  }

  /** Puts the focus into the field for a line. */
  askLine(): void {
    this.field.focus();
    this.field.select();
  }

  /** Where in the file the page is. */
  showPosition(words: string): void {
    setText(this.position, words);
    this.position.title = words; // a narrow toolbar cuts it
  }

  /** Whether the file is still being written. */
  showWriting(words: string): void {
    setText(this.state, words);
  }

  /** What came of something that the person did. */
  report(words: string): void {
    setText(this.message, words);
  }
}

/** Sets a switch. */
export function setPressed(toggle: HTMLButtonElement, on: boolean): void {
  toggle.setAttribute('aria-pressed', String(on));
}
