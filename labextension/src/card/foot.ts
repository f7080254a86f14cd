/** The card's last lines: where a cut output is kept; who decided; the arguments, and an output that is shown better above. */

import { ansiNodes } from './ansi';
import { button, el, safeLink, setText, show } from './dom';
import { count, decisionWords, patternWords, extent, visible, visibleLine } from './format';
import type { CardCallbacks, CardPart, CardSpill } from './token';

/** Most characters of input JSON that are drawn. */
const INPUT_CAP = 100_000;

/** Draws where the whole of a cut output is into `host`, replacing what is there. */
export function drawSpill(host: HTMLElement, spill: CardSpill, callbacks: CardCallbacks): void {
  const name = `Open the whole output at line ${spill.line}`;
  const nodes: Node[] = [el('span', '', `${extent(spill.lines, spill.bytes) || 'Cut'}; the rest is kept`)];
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
  const copy = button('Copy path', '', 'oc-button oc-small', () => {
    const done = navigator.clipboard?.writeText(spill.path) ?? Promise.reject(new Error('no clipboard'));
    done.then(
      () => setText(copy, 'Copied'),
      () => getSelection()?.selectAllChildren(path.firstChild as Node)
    );
  });
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
    this.node.append(this.name, this.pre);
    this.node.addEventListener('toggle', () => this.draw());
  }

  update(name: string, text: () => string): void {
    setText(this.name, name);
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
export class FootView {
  readonly node = el('div', 'oc-foot');
  private readonly why = el('span', 'oc-decisions');
  private readonly input = new Fold('oc-input', setText);
  private readonly each = new Fold('oc-each-fold', setText);
  private readonly output = new Fold('oc-output', (pre, text) => pre.replaceChildren(...ansiNodes(text)));

  constructor() {
    this.node.append(this.output.node, this.input.node, this.each.node, this.why);
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
      words.unshift('called by the model');
    }
    if (growth) {
      words.push(`${growth} so far`);
    }
    setText(this.why, words.join(' · '));
    show(this.output.node, output !== '');
    this.output.update(`output · ${extent(output.split('\n').length, undefined)}`, () => output);
    show(this.input.node, Object.keys(state.input).length > 0 || !!state.raw);
    this.input.update('input', () => inputText(part));
    const each = patternWords(ui.decisions);
    show(this.each.node, each.length > 0);
    this.each.update(`${each.length} parts, each with its rule`, () => each.join('\n'));
    show(this.node, !this.input.node.hidden || !this.output.node.hidden || words.length > 0);
  }
}

function inputText({ state }: CardPart): string {
  const json = Object.keys(state.input).length ? JSON.stringify(state.input, null, 2) : (state.raw ?? '');
  const over = json.length > INPUT_CAP ? `\n… ${count(json.length - INPUT_CAP, 'more character')}` : '';
  return visible(json.slice(0, INPUT_CAP)) + over;
}
