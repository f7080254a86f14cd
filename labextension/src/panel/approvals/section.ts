/** The panel of asks: every ask of every open notebook, oldest first, each answered as on its card. */

import { disposeCard, renderCard } from '../../card';
import type { CardCallbacks } from '../../card';
import { button, el, hasFocus, setText, show } from '../../card/dom';
import { visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import { KeyedRows } from '../controls';
import type { Section } from '../section';
import { alike } from './approvalModel';
import { focusGuarded } from './focus';
import type { ApprovalModel, Entry } from './approvalModel';

/** A button that answers several asks is dead this long after what it stands for has changed. */
const GUARD_MS = 600;

/** What the section does with the kernels. */
export interface Actions {
  callbacks(entry: Entry): CardCallbacks;
  /** Goes to the card in the notebook. */
  show(entry: Entry): void;
  /** Allows each of `entries` once. */
  allow(entries: readonly Entry[]): void;
  /** Refuses each of `entries`. */
  reject(entries: readonly Entry[]): void;
}

/** One ask in the list. */
class Row {
  readonly node = el('li', 'oc-asks-item');
  private readonly root = el('div');
  private readonly name = el('span', 'oc-asks-from');
  private readonly like: HTMLButtonElement;
  private others = 0;

  constructor(
    private entry: Entry,
    private readonly actions: Actions,
    likes: (entry: Entry) => Entry[]
  ) {
    const go = button(trans.__('Show'), '', 'oc-panel-button', () => this.actions.show(this.entry));
    go.title = trans.__('Go to its card in the notebook');
    this.like = button(trans.__('Allow all like this'), '', 'oc-panel-button', () => this.actions.allow(likes(this.entry)));
    const head = el('div', 'oc-asks-head');
    head.append(this.name, this.like, go);
    this.node.append(head, this.root);
  }

  update(entry: Entry, likes: number): void {
    this.entry = entry;
    const who = entry.agent && entry.card?.ui.by === 'model' ? ` · ${entry.agent}` : '';
    setText(this.name, visibleLine(entry.name + who));
    show(this.like, likes > 1);
    if (likes !== this.others) {
      // a click that was meant for two must not allow three
      this.others = likes;
      const text = trans.__('Allow all %1 like this once', likes);
      setText(this.like, text);
      this.like.setAttribute('aria-label', text);
      this.like.disabled = true;
      setTimeout(() => (this.like.disabled = false), GUARD_MS);
    }
    if (entry.card) {
      renderCard(this.root, entry.card, this.actions.callbacks(entry));
    }
  }

  /** @param guarded - The person did not ask for it. */
  focus(guarded = false): void {
    const card = this.root.querySelector<HTMLElement>('.oc-card');
    if (card && guarded) {
      focusGuarded(card);
      this.node.scrollIntoView({ block: 'nearest' });
    } else {
      card?.focus();
    }
  }

  dispose(): void {
    disposeCard(this.root);
    this.node.remove();
  }
}

/** Makes the section. */
export function approvalsSection(model: ApprovalModel, actions: Actions, kernels: () => number): Section {
  const node = el('div', 'oc-asks');
  node.tabIndex = -1;
  const empty = el('p', 'oc-panel-empty');
  const list = el('ol', 'oc-asks-list');
  list.setAttribute('aria-label', trans.__('Pending approvals, oldest first'));
  const bar = el('div', 'oc-asks-bar');
  const status = el('span', 'oc-asks-said');
  status.setAttribute('role', 'status');
  const none = button(trans.__('Deny all'), '', 'oc-panel-button', () => actions.reject(model.entries()));
  bar.append(status, none);
  node.append(bar, empty, list);
  const likes = (entry: Entry): Entry[] => alike(entry, model.entries());
  const rows = new KeyedRows<Entry, Row>(list, ({ id }) => id, entry => new Row(entry, actions, likes));
  let shown = 0;

  const update = (): void => {
    const entries = model.entries().filter(({ card }) => card);
    const focused = hasFocus(node);
    rows.update(entries, (row, entry) => row.update(entry, likes(entry).length));
    show(bar, entries.length > 0);
    show(empty, !entries.length);
    setText(
      empty,
      kernels()
        ? trans.__('No approvals are waiting. Requests from all open notebooks appear here.')
        : trans.__('No open notebook has the tools loaded. Run %1 in one; its requests appear here.', '%load_ext opencode_jupyter')
    );
    setText(status, trans._n('%1 approval waiting', '%1 approvals waiting', entries.length));
    setText(none, entries.length > 1 ? trans.__('Deny all %1', entries.length) : trans.__('Deny'));
    none.setAttribute('aria-label', none.textContent ?? '');
    if (entries.length !== shown) {
      shown = entries.length;
      none.disabled = true;
      setTimeout(() => (none.disabled = false), GUARD_MS);
    }
    const active = document.activeElement;
    if (focused && (!active || !hasFocus(node) || active.matches(':disabled') || active.closest('[hidden]'))) {
      // what was answered took the focus with it: on to the next, or to the word that none is left
      const first = rows.get(entries[0]?.id ?? '');
      if (first) {
        first.focus(true);
      } else {
        node.focus();
      }
    }
  };
  return {
    id: 'asks',
    title: trans.__('Approvals'),
    node,
    topics: [],
    count: () => model.entries().length,
    update,
    focus: () => (rows.get(model.entries()[0]?.id ?? '') ?? { focus: () => node.focus() }).focus()
  };
}
