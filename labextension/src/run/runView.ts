/** A run: everything a model says and does for one request, drawn from its JSON and brought up to date piece by piece. */

import type { CardCallbacks, CardPart } from '../card';
import { el, setText, show, StateMark } from '../card/dom';
import { FoldedCalls } from '../card/foldedCalls';
import { readable, visibleLine } from '../card/format';
import { isLive, stateWords } from '../card/wording';
import { RunningControls } from '../card/runningControls';
import { trans } from '../card/i18n';
import { CHANGED } from '../card/preferences';
import { CallView } from './callView';
import { typesetFormulas } from './formulas';
import { markdown } from './markdown';
import { applyUpdate } from './applyUpdate';
import type { CallItem, RunHead, RunItem, RunPart, RunUpdate, WordsItem } from './types';
import { headWords, retryWords, runWords, isRunning } from './wording';

/** The mode in which nothing is asked. */
const BYPASS = 'bypass';
/** Levels of calls inside calls that are drawn. */
const DEEPEST = 20;

const views = new WeakMap<HTMLElement, RunView>();

/** Draws `run` into `root`, or brings what is drawn there up to date. Without `callbacks` it has no buttons. */
export function renderRun(root: HTMLElement, run: RunPart, callbacks: CardCallbacks = {}): void {
  let view = views.get(root);
  if (!view) {
    view = new RunView(root, callbacks);
    views.set(root, view);
  }
  view.showWhole(run);
}

// runs follow the person's preferences as they change
document.addEventListener(CHANGED, () => {
  document.querySelectorAll('.oc-run').forEach(({ parentElement }) => parentElement && views.get(parentElement)?.fold());
});

/** Puts what has changed into the run at `root`; false if something before it is missing, so that the whole is needed. */
export function updateRun(root: HTMLElement, update: RunUpdate): boolean {
  return views.get(root)?.update(update) ?? false;
}

/** Ends the timers of the run at `root` and empties it. */
export function disposeRun(root: HTMLElement): void {
  views.get(root)?.dispose();
  views.delete(root);
  root.replaceChildren();
}

/** Words of the model, or of ours. */
class WordsView {
  readonly node: HTMLElement;
  private readonly body: HTMLElement;
  private drawn: string | undefined;
  private typeset = false;

  constructor(private readonly kind: WordsItem['kind']) {
    if (kind === 'reasoning' || kind === 'summary') {
      this.node = el('details', 'oc-thought');
      this.node.append(el('summary', '', kind === 'summary' ? trans.__('summary of the conversation') : trans.__('reasoning')));
      this.body = el('div', 'oc-words');
      this.node.append(this.body);
      this.node.addEventListener('toggle', () => this.draw());
    } else {
      this.node = this.body = el('div', kind === 'note' ? 'oc-words oc-dimmed' : 'oc-words');
    }
  }

  private text = '';
  /** Whether the text may still grow. */
  private last = false;

  update(text: string, last: boolean): void {
    this.text = text;
    if (this.kind === 'reasoning') {
      const name = this.node.firstElementChild as HTMLElement;
      setText(name, last ? trans.__('reasoning …') : trans.__('reasoning'));
    }
    this.last = last;
    show(this.node, text.trim() !== '');
    this.draw();
  }

  private draw(): void {
    if (this.node instanceof HTMLDetailsElement && !this.node.open) {
      return;
    }
    if (this.drawn !== this.text) {
      this.drawn = this.text;
      this.typeset = false;
      this.body.replaceChildren(...(this.kind === 'note' ? [document.createTextNode(readable(this.text))] : markdown(this.text)));
    }
    if (!this.last && !this.typeset) {
      this.typeset = true;
      typesetFormulas(this.body);
    }
  }
}

class RunView {
  private readonly card = el('div', 'oc-card oc-run');
  private readonly agent = el('span', 'oc-tool');
  private readonly model = el('span', 'oc-title oc-model');
  private readonly mode = el('span', 'oc-chip');
  private readonly state = new StateMark(true);
  private readonly about = el('span', 'oc-time');
  private readonly controls: RunningControls;
  private readonly folds = new FoldedCalls();
  private readonly list = el('div', 'oc-items');
  private readonly retry = el('div', 'oc-retry');
  private readonly end = el('div', 'oc-end');
  private readonly nodes = new Map<number, WordsView | CallView>();
  /** Indexes of the calls, by their ids; and of those inside each. */
  private readonly indexes = new Map<string, number>();
  private readonly inside = new Map<string, number[]>();
  private run!: RunPart;

  constructor(
    root: HTMLElement,
    private readonly callbacks: CardCallbacks
  ) {
    this.card.tabIndex = -1;
    this.card.setAttribute('role', 'group');
    this.about.setAttribute('aria-hidden', 'true');
    this.controls = new RunningControls(this.card, trans.__('Stop the run'), () => this.setTime(), () => callbacks.stop?.(''));
    this.controls.stop.classList.add('oc-stop-run');
    const head = el('div', 'oc-head');
    head.append(this.agent, this.model, this.mode, this.state.node, this.about, this.controls.stop);
    this.card.append(head, this.list, this.retry, this.end);
    root.replaceChildren(this.card);
    addEventListener('beforeprint', this.print);
  }

  private readonly print = (): void => this.nodes.forEach(view => view instanceof CallView && view.drawCard(true));

  showWhole(run: RunPart): void {
    const before: RunItem[] = this.run?.items ?? [];
    this.run = { ...run, items: run.items.slice() };
    if (run.items.length < before.length || before.some((item, index) => item.id !== run.items[index].id)) {
      this.clear(); // another run, or another order: draw it anew
    }
    run.items.forEach((item, index) => this.register(index, item));
    run.items.forEach((_, index) => this.draw(index));
    this.drawHead(run);
  }

  update(update: RunUpdate): boolean {
    if (!this.run) {
      return false;
    }
    const { head, tails = [] } = update;
    const { items, changedIndexes, complete } = applyUpdate(this.run.items, update);
    this.run = { ...head, items };
    changedIndexes.forEach(index => this.register(index, items[index]));
    changedIndexes.forEach(index => this.draw(index));
    for (const [index, tail] of tails) {
      const item = items[index];
      if (item?.kind === 'call') {
        const view = item.parent ? undefined : this.nodes.get(index);
        if (view instanceof CallView) {
          view.tail(tail);
        } else if (item.parent) {
          items[index] = { ...item, part: { ...item.part, ui: { ...item.part.ui, tail: tail.text } } };
          this.draw(index);
        }
      }
    }
    this.drawHead(head);
    return complete;
  }

  dispose(): void {
    removeEventListener('beforeprint', this.print);
    this.controls.end();
    this.clear();
  }

  private clear(): void {
    this.nodes.forEach(view => view instanceof CallView && view.dispose());
    this.nodes.clear();
    this.indexes.clear();
    this.inside.clear();
    this.folds.clear();
    this.list.replaceChildren();
  }

  /** Notes where a call is, and inside which other one. */
  private register(index: number, item: RunItem): void {
    if (item.kind === 'call' && !this.indexes.has(item.id)) {
      this.indexes.set(item.id, index);
      if (item.parent) {
        this.inside.set(item.parent, [...(this.inside.get(item.parent) ?? []), index]);
      }
    }
  }

  /** Draws the item at `index`; of a call inside another, that one. */
  private draw(index: number): void {
    let item = this.run.items[index];
    while (item.kind === 'call' && item.parent !== undefined) {
      const above = this.indexes.get(item.parent);
      if (above === undefined || above >= index) {
        break;
      }
      index = above;
      item = this.run.items[above];
    }
    let view = this.nodes.get(index);
    if (item.kind === 'gone') {
      if (view) {
        view.node.remove();
        view instanceof CallView && view.dispose();
        this.nodes.delete(index);
      }
      return;
    }
    if (!view) {
      view = item.kind === 'call' ? new CallView(this.callbacks) : new WordsView(item.kind);
      this.nodes.set(index, view);
      this.insert(index, view.node);
    }
    if (view instanceof CallView && item.kind === 'call') {
      view.update(this.tree(item));
    } else if (view instanceof WordsView && item.kind !== 'call') {
      view.update(item.text, !item.done && isRunning(this.run));
    }
  }

  /** Puts a new node at its place: behind the nearest one before it. */
  private insert(index: number, node: HTMLElement): void {
    let before = index - 1;
    while (before >= 0 && !this.nodes.has(before)) {
      before--;
    }
    const neighbour = before >= 0 ? this.nodes.get(before)?.node : undefined;
    this.list.insertBefore(node, neighbour ? neighbour.nextSibling : this.list.firstChild);
  }

  /** A call with those inside it, which come later than it does: a saved notebook may say anything. */
  private tree(item: CallItem, level = 0): CardPart {
    const own = this.indexes.get(item.id) ?? 0;
    const children = (level < DEEPEST ? (this.inside.get(item.id) ?? []) : [])
      .filter(index => index > own)
      .map(index => this.run.items[index])
      .filter((child): child is CallItem => child.kind === 'call')
      .map(child => this.tree(child, level + 1));
    return children.length ? { ...item.part, ui: { ...item.part.ui, children } } : item.part;
  }

  private drawHead(head: RunHead): void {
    const { run } = this;
    const { word, mark, tone } = runWords(run);
    setText(this.agent, visibleLine(head.agent));
    setText(this.model, visibleLine(head.model));
    this.model.title = visibleLine([head.model, head.title].filter(Boolean).join(' · '));
    setText(this.mode, head.mode ? visibleLine(head.mode) : '');
    show(this.mode, !!head.mode);
    this.mode.classList.toggle('oc-danger', head.mode === BYPASS);
    this.mode.title = head.mode === BYPASS ? trans.__('Permission mode: no approval is needed') : trans.__('Permission mode');
    this.state.update(mark, word);
    this.card.setAttribute('aria-label', trans.__('Agent %1, %2', visibleLine(head.agent), visibleLine(head.model)));
    if (this.card.dataset.tone !== tone) {
      this.card.dataset.tone = tone;
    }
    show(this.controls.stop, isRunning(head) && !!this.callbacks.stop);
    show(this.end, !!head.end);
    if (head.end) {
      this.end.dataset.tone = head.end.tone;
      const advice = head.end.advice ? [el('div', 'oc-advice', readable(head.end.advice))] : [];
      this.end.replaceChildren(el('div', 'oc-ending', readable(head.end.text)), ...advice);
    }
    this.controls.run(isRunning(head));
    this.fold();
  }

  private setTime(): void {
    const now = Date.now();
    setText(this.about, headWords(this.run, now));
    const words = retryWords(this.run, now);
    setText(this.retry, readable(words));
    show(this.retry, words !== '');
  }

  /** Several settled calls in a row become one line; while the run goes on the last ones stay as they are. */
  fold(): void {
    const indexes = [...this.nodes.keys()].sort((a, b) => a - b);
    const entries = indexes.flatMap(index => {
      const item = this.run.items[index];
      const view = this.nodes.get(index) as WordsView | CallView;
      const { node } = view;
      const folds = view instanceof CallView && !view.hasPictures;
      const settled = folds && item.kind === 'call' && !isLive(item.part) && stateWords(item.part).tone === 'ok' ? item.part.tool : undefined;
      // words that are not there stand between nothing
      return settled === undefined && node.hidden ? [] : [{ node, settled }];
    });
    const last = entries[entries.length - 1];
    if (last && isRunning(this.run)) {
      delete last.settled;
    }
    this.folds.update(entries);
  }
}
