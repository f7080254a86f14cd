/** Small texts on a tool's name, its parameters and options: under the pointer, and at the cursor with Shift-Tab. */

import { StateEffect, StateField } from '@codemirror/state';
import type { EditorState, Extension } from '@codemirror/state';
import { EditorView, hoverTooltip, keymap, showTooltip } from '@codemirror/view';
import type { Tooltip } from '@codemirror/view';

import { el } from '../card/dom';
import { visibleLine } from '../card/format';
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
const SHOWN = 200;

/** Where explanations come from. */
export interface Source {
  /** Whether this editor's kernel can explain anything. */
  answers(view: EditorView): boolean;
  /** What the kernel says; positions are those of the line. */
  ask(view: EditorView, place: LinePosition): Promise<HelpReply>;
}

/** The class of an editor whose cursor is on something that can be explained: Shift-Tab looks for it. */
export const ON_LINE = 'oc-on-tool-line';
const set = StateEffect.define<Tooltip | null>();

/** What Shift-Tab has opened; anything else that is done closes it. */
const opened = StateField.define<Tooltip | null>({
  create: () => null,
  update(value, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(set)) {
        return effect.value;
      }
    }
    return transaction.docChanged || transaction.selection ? null : value;
  },
  provide: field => showTooltip.from(field)
});

function placeAt(state: EditorState, pos: number): LinePosition & { from: number } {
  const line = state.doc.lineAt(pos);
  return { text: line.text, first: line.number === 1, at: pos - line.from, from: line.from };
}

/** Whether the one cursor stands on a line of `%tool`, behind the magic; there Shift-Tab unindents nothing. */
function isOnToolLine(state: EditorState): boolean {
  const { ranges, main } = state.selection;
  if (ranges.length > 1 || !main.empty) {
    return false;
  }
  const { text, first, at } = placeAt(state, main.head);
  const magic = text.length <= LONGEST ? magicOf(text, first) : null;
  return magic?.command === 'tool' && at > magic.end;
}

function tooltip({ from }: { from: number }, help: HelpReply): Tooltip | null {
  if (!help.found) {
    return null;
  }
  const pos = from + (help.start ?? 0);
  return { pos, end: from + (help.end ?? 0), above: true, create: () => ({ dom: drawn(help) }) };
}

/** An explanation in lines of plain text; the first is its head. */
export function lines(help: HelpReply): string[] {
  const { kind, name = '', description = '', usage, source, type, required, choices } = help;
  if (kind === 'tool') {
    return [source ? `${name} (${source})` : name, ...(usage ? [usage] : []), ...(description ? [description] : [])];
  }
  if (kind !== 'parameter') {
    return description ? [name, description] : [name];
  }
  const facts = [type ? trans.__('Type: %1', cut(type)) : ''];
  facts.push(required ? trans.__('Required') : trans.__('Optional'));
  if ('default' in help && help.default !== undefined) {
    facts.push(trans.__('Default: %1', cut(JSON.stringify(help.default))));
  }
  const values = Array.isArray(choices) && choices.length && !type?.includes('"') ? choices : [];
  if (values.length) {
    facts.push(trans.__('Values: %1', cut(values.map(value => JSON.stringify(value)).join(', '))));
  }
  return [name, facts.filter(Boolean).join(' · '), ...(description ? [description] : [])];
}

function cut(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

/** An explanation as an element; its texts are a tool's own words, so they are text and nothing else. */
export function drawn(help: HelpReply): HTMLElement {
  const node = el('div', 'oc-explained');
  const [head, ...rest] = lines(help);
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
  const place = placeAt(view.state, pos);
  if (place.text.length > LONGEST || !source.answers(view)) {
    return null;
  }
  const magic = magicOf(place.text, place.first);
  const over = magic && words(place.text, magic.end).some(({ start, end }) => start <= place.at && place.at <= end);
  if (magic?.command !== 'tool' || !over) {
    return null;
  }
  return tooltip(place, await source.ask(view, place).catch(() => ({ found: false })));
}

/** What is to be explained at the cursor: the word there, else the one before it. */
function atCursor(state: EditorState): number {
  const { head } = state.selection.main;
  const { text, at, from } = placeAt(state, head);
  return from + text.slice(0, at).trimEnd().length;
}

/** Opens the explanation at the cursor. */
export async function explainCursor(view: EditorView, source: Source): Promise<void> {
  const { doc } = view.state;
  const explanation = await explainAt(view, source, atCursor(view.state));
  if (view.state.doc === doc) {
    view.dispatch({ effects: set.of(explanation) });
  }
}

/** The editor extension. */
export function hover(source: Source): Extension {
  return [
    hoverTooltip((view, pos) => explainAt(view, source, pos)),
    opened,
    keymap.of([
      {
        key: 'Escape',
        run: view => {
          const open = view.state.field(opened) !== null;
          if (open) {
            view.dispatch({ effects: set.of(null) });
          }
          return open;
        }
      }
    ]),
    EditorView.editorAttributes.of(view => (isOnToolLine(view.state) && source.answers(view) ? { class: ON_LINE } : null))
  ];
}
