/** The part of a card that asks questions: options to choose, one's own words, Answer and Dismiss. */

import { trans } from './i18n';
import { button, el, hasFocus, keyHint, setRole, setText } from './dom';
import { visible, visibleLine } from './format';
import { RequestView } from './requestView';
import type { CardCallbacks, CardQuestion, CardQuestions } from './types';

/** The questions one request puts; made anew for every request. */
export class QuestionView extends RequestView {
  private readonly blocks: QuestionBlock[] = [];
  private readonly send: HTMLButtonElement | undefined;
  /** Whether the person was told that a question is open. */
  private warned = false;

  constructor(
    private request: CardQuestions,
    private readonly callbacks: CardCallbacks
  ) {
    super(QuestionView.keyOf(request), trans.__('Question'));
    const strip = el('div', 'oc-strip');
    const active = !!callbacks.answer;
    for (const [index, question] of request.questions.entries()) {
      const block = new QuestionBlock(question, `oc-${request.id}-${index}`, active, () => this.changed());
      this.blocks.push(block);
      this.controls.push(...block.controls);
      strip.append(block.node);
    }
    this.blocks[0]?.title.append(' ', this.position);
    if (active) {
      const row = el('div', 'oc-buttons oc-step');
      this.send = button(trans.__('Answer'), 'Enter', 'oc-button oc-go', () => this.answer());
      const dismiss = button(trans.__('Dismiss'), '', 'oc-button', () => this.sendOnce(() => callbacks.dismiss?.(this.request)));
      row.append(this.send, dismiss, this.note);
      this.controls.push(this.send, dismiss);
      strip.append(row);
      this.guard();
    }
    this.node.append(strip);
    this.update(request);
  }

  /** What tells one request from another. */
  static keyOf(request: CardQuestions): string {
    return `${request.id} ${request.digest}`;
  }

  /** Takes what may change while the questions wait. */
  update(request: CardQuestions): void {
    this.request = request;
    this.setPosition(request.position);
  }

  press(key: string, target: HTMLElement): boolean {
    if (!this.alive) {
      return false;
    }
    if (key === 'Enter') {
      this.answer();
      return true;
    }
    if (!/^[1-9]$/.test(key)) {
      return false;
    }
    // the question that has the focus; else the first that is open
    const block =
      this.blocks.find(({ node }) => node.contains(target) || hasFocus(node)) ??
      this.blocks.find(({ answer }) => !answer.length) ??
      this.blocks[this.blocks.length - 1];
    return block.choose(Number(key) - 1);
  }

  /** Live only once there is something to send. */
  protected enable(on: boolean): void {
    super.enable(on);
    this.changed(false);
  }

  private changed(byPerson = true): void {
    if (byPerson) {
      this.warned = false;
      setText(this.note, '');
    }
    if (this.send) {
      this.send.disabled = !this.alive || this.blocks.every(({ answer }) => !answer.length);
    }
  }

  private answer(): void {
    const answers = this.blocks.map(block => block.answer);
    const open = answers.filter(answer => !answer.length).length;
    if (open === answers.length) {
      setText(this.note, trans.__('Choose an answer or dismiss.'));
    } else if (open && !this.warned) {
      this.warned = true;
      const words = trans._n(
        '%1 question is not answered. Press Answer again to leave it open.',
        '%1 questions are not answered. Press Answer again to leave them open.',
        open
      );
      setText(this.note, words);
    } else {
      this.sendOnce(() => this.callbacks.answer?.(this.request, answers));
    }
  }
}

/** One question. */
class QuestionBlock {
  readonly node = el('div', 'oc-q');
  readonly title = el('div', 'oc-question');
  readonly controls: HTMLInputElement[] = [];
  private readonly choices: HTMLInputElement[] = [];
  private own: { choice: HTMLInputElement; text: HTMLInputElement } | undefined;

  constructor(
    private readonly question: CardQuestion,
    /** Names its choices; radio buttons of one name exclude each other in the whole page. */
    private readonly name: string,
    private readonly active: boolean,
    private readonly changed: () => void
  ) {
    const { header, question: text, options, multiple, custom } = question;
    setRole(this.node, multiple ? 'group' : 'radiogroup', visible(text));
    if (header) {
      this.title.append(el('span', 'oc-chip', visibleLine(header)), ' ');
    }
    this.title.append(el('b', '', visible(text)));
    if (multiple && options.length) {
      this.title.append(' ', el('span', 'oc-why', trans.__('several may be chosen')));
    }
    this.node.append(this.title);
    options.forEach((option, index) => this.node.append(this.option(option.label, option.description, index)));
    if (custom !== false && active) {
      this.node.append(this.ownAnswer());
    }
  }

  /** What is chosen or said. */
  get answer(): string[] {
    const chosen = this.choices.flatMap(({ checked }, index) => (checked ? [this.question.options[index].label] : []));
    const own = this.own?.choice.checked ? this.own.text.value.trim() : '';
    return own ? [...chosen, own] : chosen;
  }

  /** Chooses the option at `index`, or takes it back where several may be chosen. True if there is one. */
  choose(index: number): boolean {
    const choice = this.choices[index];
    if (!choice || choice.disabled) {
      return false;
    }
    choice.checked = this.question.multiple ? !choice.checked : true;
    if (hasFocus(this.node)) {
      choice.focus({ preventScroll: true }); // so that Tab goes on from here
    }
    this.changed();
    return true;
  }

  private input(): HTMLInputElement {
    const choice = el('input', 'oc-choice');
    choice.type = this.question.multiple ? 'checkbox' : 'radio';
    choice.name = this.name;
    choice.addEventListener('change', this.changed);
    this.controls.push(choice);
    return choice;
  }

  private option(label: string, description: string, index: number): HTMLElement {
    const row = el('label', 'oc-option');
    if (this.active) {
      const choice = this.input();
      this.choices.push(choice);
      row.append(choice);
    } else {
      row.append(el('span', 'oc-choice', '•'));
    }
    const words = el('span');
    words.append(el('span', 'oc-label', visible(label)));
    if (this.active && index < 9) {
      const hint = keyHint(String(index + 1));
      words.append(' ', hint);
    }
    if (description) {
      words.append(el('span', 'oc-why', visible(description)));
    }
    row.append(words);
    return row;
  }

  private ownAnswer(): HTMLElement {
    const row = el('div', 'oc-option');
    const choice = this.input();
    const own = trans.__('Type your own answer');
    choice.setAttribute('aria-label', own);
    const text = el('input', 'oc-word');
    text.type = 'text';
    text.placeholder = own;
    text.setAttribute('aria-label', `${own}: ${visible(this.question.question)}`);
    text.addEventListener('input', () => {
      choice.checked = text.value.trim() !== '';
      this.changed();
    });
    choice.addEventListener('change', () => {
      if (choice.checked) {
        text.focus({ preventScroll: true });
      }
    });
    this.controls.push(text);
    this.own = { choice, text };
    row.append(choice, text);
    return row;
  }
}
