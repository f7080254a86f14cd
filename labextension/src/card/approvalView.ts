/** The part of a card that requests approval: what is to be allowed, in full, and the replies. */

import { trans } from './i18n';
import { drawDiffs } from './bodies/diffs';
import { textBox } from './copy';
import { drawDiff } from './diffview';
import { button, el, hasFocus, onEnterEscape, setRole, setText, show } from './dom';
import { visible, visibleLine } from './format';
import { ruleWords } from './wording';
import { GUARD_MS, RequestView, RETRY_MS } from './requestView';
import { ReviseForm } from './reviseForm';
import type { CardAsk, CardCallbacks, CardRule, Reply, ReplyOptions, Scope } from './types';

export { GUARD_MS, RETRY_MS };

/** Several patterns, each with the rule that decides it; those that are asked for stand out. */
function patternList(patterns: string[], rules: CardRule[]): HTMLElement {
  const list = el('ul', 'oc-each');
  patterns.forEach((pattern, index) => {
    const { code, from } = ruleWords(rules[index]);
    const item = el('li', rules[index].action === 'ask' ? 'oc-asked' : '');
    item.append(el('code', '', visibleLine(pattern)), ' ', el('span', 'oc-why', trans.__('rule %1', code) + from));
    list.append(item);
  });
  return list;
}

/** The question of one request; made anew for each. */
export class ApprovalView extends RequestView {
  private readonly first = el('div', 'oc-step');
  private readonly second = el('div', 'oc-step');
  private readonly reason = el('input', 'oc-word');
  private readonly fields: HTMLInputElement[] = [];
  private form: ReviseForm | undefined;

  /**
   * @param input - The call's arguments, which a person may change before allowing it.
   * @param byModel - A model called, so that a denial may carry a reason.
   */
  constructor(
    private ask: CardAsk,
    private readonly callbacks: CardCallbacks,
    private readonly input: Record<string, unknown> = {},
    private readonly byModel = false
  ) {
    super(ApprovalView.keyOf(ask), trans.__('Approval needed'));
    this.drawDetail();
    const strip = el('div', 'oc-strip');
    this.drawQuestion(strip);
    if (callbacks.reply) {
      this.drawFirst();
      this.drawSecond();
      show(this.second, false);
      strip.append(this.first, this.second, this.note);
      this.guard();
    }
    this.node.append(strip);
    this.update(ask);
  }

  /** What tells one request from another. */
  static keyOf(ask: CardAsk): string {
    return `${ask.id} ${ask.digest}`;
  }

  /** Takes what may change while a request waits. */
  update(ask: CardAsk): void {
    this.ask = ask;
    this.setPosition(ask.position);
  }

  /** A key pressed in the card, outside its text fields. True if it meant something here. */
  press(key: string): boolean {
    if (!this.callbacks.reply) {
      return false;
    }
    const two = this.first.hidden;
    if (key === 'Escape' && two) {
      this.back();
    } else if (key === '1' && !two) {
      this.send('once');
    } else if (key === '2' && !two && this.ask.always.length) {
      this.patterns();
    } else if (key === '4' && !two && this.canChange) {
      this.change();
    } else if ((key === '3' || key === 'Escape') && !two) {
      this.deny();
    } else {
      return false;
    }
    return true;
  }

  private drawDetail(): void {
    const { command, diff, diffs } = this.ask;
    if (command) {
      const box = textBox('', trans.__('Command'), trans.__('Copy command'), () => command);
      box.inner.textContent = visible(command);
      box.ready();
      this.node.append(box.node);
    }
    if (diff) {
      const box = textBox('oc-diff', trans.__('Change'), trans.__('Copy change'), () => diff);
      this.node.append(box.node);
      drawDiff(box.inner, diff);
      box.ready();
    }
    if (diffs?.length) {
      const files = el('div', 'oc-files');
      drawDiffs(files, diffs);
      this.node.append(files);
    }
  }

  private drawQuestion(strip: HTMLElement): void {
    const { ask } = this;
    const question = el('div', 'oc-question');
    question.append(el('b', '', ask.question ? trans.__(ask.question) : trans.__('Allow %1?', visibleLine(ask.permission))));
    const shown = ask.permission === 'edit' && ask.path ? [ask.path] : ask.patterns;
    const repeatsCommand = shown.length === 1 && shown[0] === ask.command?.trim();
    const each = shown.length > 1 && ask.rules?.length === shown.length ? ask.rules : undefined;
    for (const pattern of repeatsCommand || each ? [] : shown) {
      question.append(' ', el('code', '', visibleLine(pattern)));
    }
    question.append(' ', this.position);
    strip.append(question);
    if (each) {
      strip.append(patternList(shown, each));
    } else if (ask.rule) {
      const why = el('div', 'oc-why', `${trans.__('rule')} `);
      const { code, from } = ruleWords(ask.rule);
      why.append(el('code', '', code), from);
      strip.append(why);
    }
  }

  private drawFirst(): void {
    const row = el('div', 'oc-buttons');
    const yes = this.ask.permission === 'trust' ? trans.__('Trust') : trans.__('Allow once');
    const once = button(yes, '1', 'oc-button oc-go', () => this.send('once'));
    const session = button(trans.__('Allow for this session…'), '2', 'oc-button', () => this.patterns());
    const no = button(trans.__('Deny'), '3', 'oc-button', () => this.deny());
    this.reason.type = 'text';
    this.reason.placeholder = trans.__('Reason (sent to the model)');
    this.reason.setAttribute('aria-label', this.reason.placeholder);
    this.reason.title = trans.__('Enter denies the call with this reason');
    // Escape: out of the field, where keys answer again
    onEnterEscape(this.reason, () => this.deny(), () => this.node.closest<HTMLElement>('.oc-card')?.focus({ preventScroll: true }));
    const change = button(trans.__('Change…'), '4', 'oc-button', () => this.change());
    change.title = trans.__('Change the arguments before the call runs');
    row.append(once, ...(this.ask.always.length ? [session] : []), no, ...(this.canChange ? [change] : []));
    if (this.byModel) {
      row.append(this.reason);
    }
    this.controls.push(once, session, no, change);
    const keys = this.callbacks.keys?.() ?? {};
    for (const [made, key] of [[once, keys.once], [session, keys.session], [no, keys.deny]] as const) {
      if (key) {
        made.title = trans.__('%1 from anywhere in the page', key);
      }
    }
    this.first.append(row);
    if (keys.once && keys.deny) {
      this.first.append(el('div', 'oc-why oc-keys', trans.__('%1 allows once, %2 denies', keys.once, keys.deny)));
    }
  }

  private drawSecond(): void {
    const group = el('div', 'oc-patterns');
    setRole(group, 'group', trans.__('Patterns to allow'));
    const words = trans.__('Allowed from now on; * matches anything. Edit to allow less, clear to skip:');
    group.append(el('div', 'oc-why', words));
    this.ask.always.forEach((pattern, index) => {
      const field = el('input', 'oc-word');
      field.type = 'text';
      field.value = pattern;
      field.setAttribute('aria-label', trans.__('Pattern %1', index + 1));
      onEnterEscape(field, () => this.always('session'), () => this.back());
      this.fields.push(field);
      group.append(field);
      if (visible(pattern) !== pattern) {
        group.append(el('div', 'oc-why', trans.__('contains invisible characters: %1', visible(pattern))));
      }
    });
    const row = el('div', 'oc-buttons');
    const confirm = button(trans.__('Allow these for this session'), '', 'oc-button oc-go', () => this.always('session'));
    const project = button(trans.__('Always in this project'), '', 'oc-button', () => this.always('project'));
    const back = button(trans.__('Back'), '', 'oc-button', () => this.back());
    project.title = trans.__('Writes these rules to the project’s configuration; %permissions lists and revokes them');
    row.append(confirm, project, back);
    this.controls.push(confirm, project, back);
    this.second.append(group, row);
  }

  private patterns(): void {
    if (this.alive) {
      this.switchStep(this.first, this.second);
    }
  }

  /** The arguments, whole: the card's own may be cut. */
  private get fullInput(): Record<string, unknown> {
    return this.ask.input ?? this.input;
  }

  private get canChange(): boolean {
    return !!this.ask.editable && !!this.callbacks.revise && Object.keys(this.fullInput).length > 0;
  }

  private change(): void {
    const { revise } = this.callbacks;
    if (!this.alive || !revise) {
      return;
    }
    if (!this.form) {
      this.form = new ReviseForm(this.fullInput, input => revise(this.ask, input), () => this.back());
      this.controls.push(...this.form.controls);
      this.note.before(this.form.node);
    }
    this.switchStep(this.first, this.form.node);
  }

  private back(): void {
    this.switchStep(this.second.hidden && this.form ? this.form.node : this.second, this.first);
  }

  /** From one step to the other. The person's focus, if it was here, goes along; it never comes here by itself. */
  private switchStep(from: HTMLElement, to: HTMLElement): void {
    const focused = hasFocus(this.node) || hasFocus(this.node.parentElement ?? this.node);
    show(from, false);
    show(to, true);
    setText(this.note, '');
    if (focused) {
      const target = to === this.second ? this.fields[0] : to === this.first ? this.node.closest<HTMLElement>('.oc-card') : this.form;
      target?.focus({ preventScroll: true });
    }
    this.guard();
  }

  private deny(): void {
    const message = this.reason.value.trim();
    this.send('reject', message ? { message } : {});
  }

  private always(scope: Scope): void {
    const patterns = this.fields.map(field => field.value.trim()).filter(Boolean);
    if (!patterns.length) {
      setText(this.note, trans.__('No pattern is left. Go back to allow the call once.'));
      return;
    }
    this.send('always', { patterns, scope });
  }

  private send(reply: Reply, options: ReplyOptions = {}): void {
    this.sendOnce(() => this.callbacks.reply?.(this.ask, reply, options));
  }
}
