/** The card's last lines: where a cut output is kept; who decided; the arguments, and an output that is shown better above. */

import { drawOutput } from './ansi';
import { trans } from './i18n';
import { copyButton } from './copy';
import { button, el, safeLink, setText, show } from './dom';
import { extent, grouped, lineCount, visible, visibleLine } from './format';
import { decisionWords, isLive, patternWords } from './wording';
import type { CardCallbacks, CardPart, CardSpill } from './types';

/** Most characters of input JSON that are drawn. */
const INPUT_CAP = 100_000;

/** Draws where the whole of a cut output is into `host`, replacing what is there. */
export function drawSpill(host: HTMLElement, spill: CardSpill, callbacks: CardCallbacks): void {
  const name = spill.writing ? trans.__('Open the whole output so far') : trans.__('Open the whole output at line %1', spill.line);
  const words = trans.__('%1; the rest is kept', extent(spill.lines, spill.bytes) || trans.__('Cut'));
  const nodes: Node[] = [el('span', '', spill.writing ? trans.__('Only the end is shown here') : words)];
  const href = safeLink(spill.url);
  if (callbacks.open) {
    nodes.push(button(name, '', 'oc-link', () => callbacks.open?.(spill)));
  } else if (href) {
    const link = el('a', '', name);
    link.href = href;
    link.target = '_blank';
    link.rel = 'noopener';
    nodes.push(link);
  }
  const path = el('span', 'oc-path');
  path.append(el('code', '', visibleLine(spill.path)));
  const copy = copyButton(
    trans.__('Copy path'),
    trans.__('Copy path'),
    'oc-button oc-small',
    () => spill.path,
    () => getSelection()?.selectAllChildren(path.firstChild as Node)
  );
  path.append(' ', copy);
  nodes.push(path);
  host.replaceChildren(...nodes);
}

/** Something a person may open; drawn when it is. */
class Fold {
  readonly node: HTMLDetailsElement;
  private readonly name = el('summary');
  private readonly pre = el('pre', 'oc-pre');
  private text: () => string = () => '';
  private drawn: string | undefined;

  constructor(
    className: string,
    private readonly paint: (pre: HTMLElement, text: string) => void
  ) {
    this.node = el('details', className);
    this.pre.tabIndex = 0;
    this.pre.setAttribute('role', 'group');
    this.node.append(this.name, this.pre);
    this.node.addEventListener('toggle', () => this.draw());
  }

  update(name: string, text: () => string): void {
    setText(this.name, name);
    this.pre.setAttribute('aria-label', name);
    this.text = text;
    this.draw();
  }

  private draw(): void {
    const text = this.node.open ? this.text() : undefined;
    if (text !== undefined && text !== this.drawn) {
      this.drawn = text;
      this.paint(this.pre, text);
    }
  }
}

/** The last line of a card. */
export class FooterView {
  readonly node = el('div', 'oc-foot');
  private readonly why = el('span', 'oc-decisions');
  private readonly input = new Fold('oc-input', drawOutput);
  private readonly each = new Fold('oc-each-fold', drawOutput);
  private readonly output = new Fold('oc-output', drawOutput);
  private readonly sent = new Fold('oc-sent', drawOutput);

  private more: HTMLElement | undefined;

  constructor(private readonly callbacks: CardCallbacks) {
    this.node.append(this.output.node, this.sent.node, this.input.node, this.each.node, this.why);
  }

  /**
   * @param part - The call.
   * @param output - The output that is folded away here; empty if it is shown above.
   * @param growth - How much output there is so far, while the call runs.
   */
  update(part: CardPart, output: string, growth: string): void {
    const { state, ui } = part;
    const words = [...new Set(ui.decisions.map(decisionWords))];
    if (ui.by === 'model') {
      words.unshift(trans.__('called by the model'));
    }
    if (growth) {
      words.push(trans.__('%1 so far', growth));
    }
    if (ui.code) {
      words.push(visibleLine(ui.code));
    }
    if (this.why.textContent !== words.join(' · ')) {
      const code = ui.code ? words[words.length - 1] : '';
      const before = words.slice(0, -1).map(text => `${text} · `);
      this.why.replaceChildren(...(code ? [...before, this.errorCode(code)] : [words.join(' · ')]));
    }
    show(this.output.node, output !== '');
    this.output.update(trans.__('output · %1', lineCount(output.split('\n').length)), () => output);
    show(this.sent.node, !!ui.sent);
    this.sent.update(trans.__('sent to the model'), () => ui.sent ?? '');
    show(this.input.node, Object.keys(state.input).length > 0 || !!state.raw);
    this.input.update(trans.__('input'), () => inputText(part));
    const each = patternWords(ui.decisions);
    show(this.each.node, each.length > 0);
    this.each.update(trans._n('%1 part, each with its rule', '%1 parts, each with its rule', each.length), () => each.join('\n'));
    this.drawMore(part);
    show(this.node, !!this.more || !this.input.node.hidden || !this.output.node.hidden || words.length > 0);
  }

  /** An error's code; where the page can explain it, a link to that. */
  private errorCode(code: string): Node | string {
    const { explain } = this.callbacks;
    if (!explain) {
      return code;
    }
    const link = button(trans.__('What %1 means', code), '', 'oc-link', () => explain(code));
    link.textContent = code;
    return link;
  }

  /** What else can be done with a call that is over. */
  private drawMore(part: CardPart): void {
    if (isLive(part) || !this.callbacks.more) {
      this.more?.remove();
      this.more = undefined;
      return;
    }
    const made = this.callbacks.more(part);
    this.more?.replaceWith(made);
    if (!this.more) {
      this.why.before(made);
    }
    this.more = made;
  }
}

function inputText({ state }: CardPart): string {
  const json = Object.keys(state.input).length ? JSON.stringify(state.input, null, 2) : (state.raw ?? '');
  const left = json.length - INPUT_CAP;
  const over = left > 0 ? `\n${trans._n('… %2 more character', '… %2 more characters', left, grouped(left))}` : '';
  return visible(json.slice(0, INPUT_CAP)) + over;
}
