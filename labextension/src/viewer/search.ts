/** The search bar: the kernel searches, step by step; here it is asked how far it is, and the hits are gone through. */

import { UUID } from '@lumino/coreutils';

import { button, el, onEnterEscape, setRole, setText, show } from '../card/dom';
import { errorMessage, grouped, lineCount } from '../card/format';
import { trans } from '../card/i18n';
import type { SearchState, Source } from './source';

/** How often a search under way is asked for. */
const POLL_MS = 150;
/** How long after the last key a search begins by itself. */
const TYPED_MS = 250;
/** Past every line. */
const LAST = Number.MAX_SAFE_INTEGER;

/** What a search needs of its viewer. */
export interface SearchHost {
  /** The line from which the next hit is looked for. */
  line(): number;
  /** Shows a line that has a hit. */
  goTo(line: number): Promise<void>;
  /** The bar was closed; its marks go. */
  closed(): void;
}

export class FindBar {
  readonly node = el('div', 'oc-find');
  /** The search whose hits are marked; nothing: none. */
  id: string | undefined;
  private readonly field = el('input', 'oc-word');
  private readonly regex: HTMLButtonElement;
  private readonly matchCase: HTMLButtonElement;
  private readonly cancel: HTMLButtonElement;
  private readonly words = el('span', 'oc-found');
  /** The hit that is shown. */
  private hitLine = 0;
  /** Counts what was asked for, so that something older is given up. */
  private turn = 0;
  private last = '';
  private typing: ReturnType<typeof setTimeout> | undefined;
  /** The line from which a search looks while its text is typed. */
  private anchor = 1;

  constructor(
    private readonly source: Source,
    private readonly host: SearchHost
  ) {
    setRole(this.node, 'search', trans.__('Search in the whole output'));
    this.field.type = 'text';
    this.field.spellcheck = false;
    this.field.placeholder = trans.__('Find');
    this.field.setAttribute('aria-label', trans.__('Find'));
    onEnterEscape(this.field, ({ shiftKey }) => void this.go(shiftKey ? -1 : 1), () => this.close());
    this.field.addEventListener('input', () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => void this.go(1, true), TYPED_MS);
    });
    this.regex = this.toggle('.*', trans.__('Regular expression'));
    this.matchCase = this.toggle('Aa', trans.__('Match case'));
    const previous = button(trans.__('Previous match'), '', 'oc-button', () => void this.go(-1));
    const next = button(trans.__('Next match'), '', 'oc-button', () => void this.go(1));
    setText(previous, '↑');
    setText(next, '↓');
    this.cancel = button(trans.__('Cancel the search'), '', 'oc-button', () => this.stop());
    setText(this.cancel, trans.__('Cancel'));
    const close = button(trans.__('Close the search'), '', 'oc-button', () => this.close());
    setText(close, '×');
    this.words.setAttribute('role', 'status');
    this.node.append(this.field, this.regex, this.matchCase, previous, next, this.words, this.cancel, close);
    show(this.cancel, false);
    show(this.node, false);
  }

  /** Opens the bar, with `text` in it if there is some. */
  open(text = ''): void {
    this.anchor = this.host.line();
    show(this.node, true);
    if (text) {
      this.field.value = text;
    }
    this.field.focus();
    this.field.select();
  }

  get shown(): boolean {
    return !this.node.hidden;
  }

  /** Ends the search and takes the bar away. */
  close(): void {
    this.end();
    show(this.node, false);
    setText(this.words, '');
    this.host.closed();
  }

  /** Ends the search; what was found stays. */
  stop(): void {
    this.turn++;
    show(this.cancel, false);
    setText(this.words, trans.__('The search was cancelled.'));
    this.end();
  }

  /** Ends the search on the kernel's side, too. */
  end(): void {
    clearTimeout(this.typing);
    this.turn++;
    this.last = '';
    const { id } = this;
    this.id = undefined;
    if (id) {
      this.source.stop(id).catch(() => undefined); // a kernel that is gone searches no more
    }
  }

  /** The next hit, or the one before; begins the search if it is another one than before. `typed`: by typing alone. */
  async go(direction: 1 | -1, typed = false): Promise<void> {
    clearTimeout(this.typing);
    const text = this.field.value;
    const query = { text, regex: pressed(this.regex), case: pressed(this.matchCase) };
    const key = JSON.stringify(query);
    const fresh = key !== this.last;
    if (typed && !fresh) {
      return;
    }
    if (!text) {
      this.end();
      setText(this.words, '');
      return;
    }
    if (fresh) {
      this.end();
      this.last = key;
      this.id = UUID.uuid4();
      this.hitLine = Math.max(0, (typed ? this.anchor : this.host.line()) - 1);
    }
    const turn = ++this.turn;
    const id = this.id as string;
    try {
      const state = fresh ? await this.source.search(id, query, this.hitLine) : await this.source.searchState(id, this.hitLine, direction);
      await this.follow(id, turn, state, direction);
      if (!typed) {
        this.anchor = this.host.line();
      }
    } catch (error) {
      if (turn === this.turn) {
        show(this.cancel, false);
        setText(this.words, errorMessage(error));
        this.last = '';
        this.id = undefined;
      }
    }
  }

  /** Asks on until the search is over; goes to the hit as soon as there is one, around the end if there is none. */
  private async follow(id: string, turn: number, state: SearchState, direction: 1 | -1): Promise<void> {
    let searching = true;
    let place: number | null | undefined;
    let around = false;
    while (turn === this.turn) {
      if (searching && state.found == null && state.done && state.hits > 0 && !around) {
        around = true;
        this.hitLine = direction > 0 ? 0 : LAST;
        state = await this.source.searchState(id, this.hitLine, direction);
        continue;
      }
      if (searching && state.found != null) {
        searching = false;
        place = state.place;
        this.hitLine = state.found;
        await this.host.goTo(state.found);
      }
      if (turn === this.turn) {
        show(this.cancel, !state.done);
        setText(this.words, progressText(state, place, around));
      }
      if (state.done) {
        return;
      }
      await new Promise(resolve => setTimeout(resolve, POLL_MS));
      if (turn === this.turn) {
        state = await this.source.searchState(id, this.hitLine, direction);
      }
    }
  }

  private toggle(text: string, name: string): HTMLButtonElement {
    const made = button(name, '', 'oc-button oc-toggle', () => {
      made.setAttribute('aria-pressed', String(!pressed(made)));
      this.field.focus();
    });
    setText(made, text);
    made.title = name;
    made.setAttribute('aria-pressed', 'false');
    return made;
  }
}

const pressed = (toggle: HTMLElement): boolean => toggle.getAttribute('aria-pressed') === 'true';

function progressText({ hits, scanned, bytes, done, full }: SearchState, place: number | null | undefined, around: boolean): string {
  const percent = Math.floor((100 * scanned) / Math.max(1, bytes));
  const far = trans.__('%1 % searched', percent);
  if (!hits) {
    return done ? trans.__('Not found') : far;
  }
  const lines = lineCount(hits);
  const which = place ? trans.__('%1 of %2', grouped(place), lines) : lines;
  const from = around ? ` · ${trans.__('wrapped around')}` : '';
  const rest = full ? ` · ${trans.__('too many matches; the search stopped here')}` : done ? '' : ` · ${far}`;
  return `${which}${rest}${from}`;
}
