/** Small texts on a tool's name, its parameters and options: under the pointer, and at the cursor with Shift-Tab. */

import { StateEffect, StateField } from '@codemirror/state';
import type { EditorState, Extension } from '@codemirror/state';
import { EditorView, hoverTooltip, keymap, showTooltip } from '@codemirror/view';
import type { Tooltip } from '@codemirror/view';

import { el } from '../card/dom';
import { shorten, visibleLine } from '../card/format';
import { trans } from '../card/i18n';
import { LONGEST, magicOf, words } from './magicLine';
import type { HelpReply } from './messages';

/** A line of a cell, and a place in it. */
export interface LinePosition {
  text: string;
  /** It is the cell's first. */
  first: boolean;
  at: number;
}

/** Characters of a value that are shown. */
const VALUE_CHARS = 200;

/** Where explanations come from. */
export interface Source {
  /** Whether this editor's kernel can explain anything. */
  answers(view: EditorView): boolean;
  /** What the kernel says; positions are those of the line. */
  ask(view: EditorView, position: LinePosition): Promise<HelpReply>;
}

/** The class of an editor whose cursor is on something that can be explained: Shift-Tab looks for it. */
export const ON_LINE = 'oc-on-tool-line';
const setTooltip = StateEffect.define<Tooltip | null>();

/** What Shift-Tab has opened; anything else that is done closes it. */
const openTooltip = StateField.define<Tooltip | null>({
  create: () => null,
  update(value, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(setTooltip)) {
        return effect.value;
      }
    }
    return transaction.docChanged || transaction.selection ? null : value;
  },
  provide: field => showTooltip.from(field)
});

function positionAt(state: EditorState, pos: number): LinePosition & { from: number } {
  const line = state.doc.lineAt(pos);
  return { text: line.text, first: line.number === 1, at: pos - line.from, from: line.from };
}

/** Whether the one cursor stands on a line of `%tool`, behind the magic; there Shift-Tab unindents nothing. */
function isOnToolLine(state: EditorState): boolean {
  const { ranges, main } = state.selection;
  if (ranges.length > 1 || !main.empty) {
    return false;
  }
  const { text, first, at } = positionAt(state, main.head);
  const magic = text.length <= LONGEST ? magicOf(text, first) : null;
  return magic?.command === 'tool' && at > magic.end;
}

function tooltip({ from }: { from: number }, help: HelpReply): Tooltip | null {
  if (!help.found) {
    return null;
  }
  const pos = from + (help.start ?? 0);
  return { pos, end: from + (help.end ?? 0), above: true, create: () => ({ dom: renderHelp(help) }) };
}

/** An explanation in lines of plain text; the first is its head. */
export function helpLines(help: HelpReply): string[] {
  const { kind, name = '', description = '', usage, source, type, required, choices } = help;
  if (kind === 'tool') {
    return [source ? `${name} (${source})` : name, ...(usage ? [usage] : []), ...(description ? [description] : [])];
  }
  if (kind !== 'parameter') {
    return description ? [name, description] : [name];
  }
  const facts = [type ? trans.__('Type: %1', shorten(type, VALUE_CHARS)) : ''];
  facts.push(required ? trans.__('Required') : trans.__('Optional'));
  if ('default' in help && help.default !== undefined) {
    facts.push(trans.__('Default: %1', shorten(JSON.stringify(help.default), VALUE_CHARS)));
  }
  const values = Array.isArray(choices) && choices.length && !type?.includes('"') ? choices : [];
  if (values.length) {
    facts.push(trans.__('Values: %1', shorten(values.map(value => JSON.stringify(value)).join(', '), VALUE_CHARS)));
  }
  return [name, facts.filter(Boolean).join(' · '), ...(description ? [description] : [])];
}

/** An explanation as an element; its texts are a tool's own words, so they are text and nothing else. */
export function renderHelp(help: HelpReply): HTMLElement {
  const node = el('div', 'oc-explained');
  const [head, ...rest] = helpLines(help);
  node.append(el('div', 'oc-explained-name', visibleLine(head)));
  for (const [index, line] of rest.entries()) {
    const usage = help.kind === 'tool' && index === 0 && line === help.usage;
    node.append(el('div', usage ? 'oc-explained-usage' : 'oc-explained-text', visibleLine(line)));
  }
  node.setAttribute('role', 'tooltip');
  return node;
}

/** Has the kernel explain the place `pos`. */
async function explainAt(view: EditorView, source: Source, pos: number): Promise<Tooltip | null> {
  const position = positionAt(view.state, pos);
  if (position.text.length > LONGEST || !source.answers(view)) {
    return null;
  }
  const magic = magicOf(position.text, position.first);
  const isOverWord = magic && words(position.text, magic.end).some(({ start, end }) => start <= position.at && position.at <= end);
  if (magic?.command !== 'tool' || !isOverWord) {
    return null;
  }
  return tooltip(position, await source.ask(view, position).catch(() => ({ found: false })));
}

/** What is to be explained at the cursor: the word there, else the one before it. */
function wordAtCursor(state: EditorState): number {
  const { head } = state.selection.main;
  const { text, at, from } = positionAt(state, head);
  return from + text.slice(0, at).trimEnd().length;
}

/** Opens the explanation at the cursor. */
export async function explainCursor(view: EditorView, source: Source): Promise<void> {
  const { doc } = view.state;
  const explanation = await explainAt(view, source, wordAtCursor(view.state));
  if (view.state.doc === doc) {
    view.dispatch({ effects: setTooltip.of(explanation) });
  }
}

/** The editor extension. */
export function hover(source: Source): Extension {
  return [
    hoverTooltip((view, pos) => explainAt(view, source, pos)),
    openTooltip,
    keymap.of([
      {
        key: 'Escape',
        run: view => {
          const open = view.state.field(openTooltip) !== null;
          if (open) {
            view.dispatch({ effects: setTooltip.of(null) });
          }
          return open;
        }
      }
    ]),
    EditorView.editorAttributes.of(view => (isOnToolLine(view.state) && source.answers(view) ? { class: ON_LINE } : null))
  ];
}
