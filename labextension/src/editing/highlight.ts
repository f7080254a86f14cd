/**
 * The look of our cells: the body of `%%tool bash` as a shell script, of `%%tool write` as the file it becomes, of
 * `%%agent` as prose; the parts of a `%tool` line in their own colours. A cell's language is exchanged, not painted over,
 * so that comments, brackets and indentation go by it too; when its first line changes, all of it is as before.
 */

import { Language, language, StreamLanguage } from '@codemirror/language';
import { Prec, RangeSetBuilder, StateEffect, StateField } from '@codemirror/state';
import type { EditorState, Extension, Text } from '@codemirror/state';
import { Decoration, ViewPlugin } from '@codemirror/view';
import type { DecorationSet, EditorView, ViewUpdate } from '@codemirror/view';

import { LONGEST, magicOf } from './line';
import { masked } from './masking';
import { bodyOf, EXPRESSION, tokens } from './tokens';
import type { Body } from './tokens';

/** A cell of a Jupyter notebook with an IPython kernel. */
const IPYTHON = 'text/x-ipython';

/** Gives the languages that JupyterLab has. */
export interface Languages {
  /** By name, or by the name of a file; null: none such. Loaded when first wanted. */
  load(wanted: { name?: string; file?: string }): Promise<Language | null>;
}

/** What a cell is; `key` names its language. */
interface Plan {
  body: Body | null;
  /** Lines of ours stand in a cell of Python. */
  lines: boolean;
  key: string;
}

const NONE: Plan = { body: null, lines: false, key: '' };
const arrived = StateEffect.define<{ key: string; language: Language }>();
/** What no language is known for: plain text, and nothing of Python. */
const plain = StreamLanguage.define({ name: 'plain', token: stream => (stream.skipToEnd(), null) });

function keyOf(body: Body): string {
  return 'name' in body ? `${body.kind}:${body.kind === 'file' ? extension(body.name) : body.name}` : body.kind;
}

function extension(name: string): string {
  const dot = name.lastIndexOf('.');
  return dot < 0 ? name : name.slice(dot);
}

function hasLines(doc: Text, from = 1, to = doc.lines): boolean {
  let number = from;
  for (const line of doc.iterLines(from, to + 1)) {
    if (number++ && line.includes('%') && magicOf(line, false)) {
      return true;
    }
  }
  return false;
}

/** The plan of a cell. */
export function planOf(doc: Text): Plan {
  const body = bodyOf(doc.line(1).text.slice(0, LONGEST));
  if (body) {
    return { body, lines: false, key: keyOf(body) };
  }
  return hasLines(doc) ? { body: null, lines: true, key: 'lines' } : NONE;
}

/** The same after a change: where no line was ours only those that changed are looked at. */
function planAfter(before: Plan, state: EditorState, changed: (take: (from: number, to: number) => void) => void): Plan {
  const body = bodyOf(state.doc.line(1).text.slice(0, LONGEST));
  if (before.body || before.lines || body) {
    const now = planOf(state.doc);
    return now.key === before.key && now.lines === before.lines ? before : now;
  }
  let lines = false;
  changed((from, to) => {
    lines ||= hasLines(state.doc, state.doc.lineAt(from).number, state.doc.lineAt(to).number);
  });
  return lines ? { body: null, lines, key: 'lines' } : before;
}

interface Held {
  plan: Plan;
  /** In its place until it is loaded: plain text for a body, nothing for Python. */
  language: Language | null;
}

/** The editor extension; `mimeType` gives that of the editor's model. */
export function highlighting(languages: Languages, mimeType: () => string): Extension {
  const held = StateField.define<Held>({
    create: state => (mimeType() === IPYTHON ? hold(planOf(state.doc)) : hold(NONE)),
    update(value, transaction) {
      const ours = mimeType() === IPYTHON;
      let next = value;
      if (!ours) {
        next = value.plan === NONE ? value : hold(NONE);
      } else if (transaction.reconfigured) {
        // the editor's own language came or went; so may have ours
        const plan = planOf(transaction.newDoc);
        next = plan.key === value.plan.key ? value : hold(plan);
      } else if (transaction.docChanged) {
        const plan = planAfter(value.plan, transaction.state, take =>
          transaction.changes.iterChangedRanges((_a, _b, from, to) => take(from, to))
        );
        next = plan === value.plan ? value : hold(plan);
      }
      for (const effect of transaction.effects) {
        if (effect.is(arrived) && effect.value.key === next.plan.key) {
          next = { plan: next.plan, language: effect.value.language };
        }
      }
      return next;
    }
  });

  const hold = (plan: Plan): Held => ({ plan, language: plan.body ? plain : null });

  const load = async (plan: Plan): Promise<Language | null> => {
    const { body } = plan;
    if (!body) {
      const python = plan.lines ? await languages.load({ name: 'ipython' }) : null;
      return python && masked(python, false);
    }
    const found =
      body.kind === 'agent'
        ? await languages.load({ name: 'Markdown' })
        : body.kind === 'language'
          ? await languages.load({ name: body.name })
          : body.kind === 'file'
            ? await languages.load({ file: body.name })
            : null;
    return found && masked(found, true);
  };

  const painter = ViewPlugin.fromClass(
    class {
      decorations: DecorationSet = Decoration.none;
      private wanted = '';

      constructor(view: EditorView) {
        this.follow(view);
      }

      update(update: ViewUpdate): void {
        const now = update.state.field(held);
        if (update.docChanged || update.viewportChanged || now !== update.startState.field(held)) {
          this.follow(update.view);
        }
      }

      private follow(view: EditorView): void {
        const { plan } = view.state.field(held);
        this.decorations = plan === NONE ? Decoration.none : paint(view, plan);
        if (this.wanted !== plan.key) {
          this.wanted = plan.key;
          void load(plan)
            .then(found => {
              if (found && this.wanted === plan.key) {
                view.dispatch({ effects: arrived.of({ key: plan.key, language: found }) });
              }
            })
            .catch(() => undefined); // then the cell stays as plain as it is
        }
      }
    },
    { decorations: value => value.decorations }
  );

  const chosen = language.computeN([held], state => {
    const { language: own } = state.field(held);
    return own ? [own] : [];
  });
  // CodeMirror looks for the language as soon as there may be one, and an editor that has none would have null
  return [held, Prec.highest(chosen), Prec.highest(painter), Prec.lowest(language.of(plain))];
}

const marks = new Map<string, Decoration>();

function mark(kind: string): Decoration {
  let found = marks.get(kind);
  if (!found) {
    found = Decoration.mark({ class: `oc-tok oc-tok-${kind}` });
    marks.set(kind, found);
  }
  return found;
}

/** The parts of our lines that are in view. */
function paint(view: EditorView, plan: Plan): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  const { doc } = view.state;
  for (const range of view.visibleRanges) {
    for (let at = range.from; at <= range.to; ) {
      const line = doc.lineAt(at);
      at = line.to + 1;
      const { text, from, number } = line;
      if (text.length > LONGEST || line.to < range.from) {
        continue;
      }
      const magic = plan.body && number > 1 ? null : magicOf(text, number === 1);
      if (magic) {
        for (const token of tokens(text, magic)) {
          if (token.to > token.from) {
            builder.add(from + token.from, from + token.to, mark(token.kind));
          }
        }
      } else if (plan.body?.kind === 'agent') {
        for (const match of text.matchAll(EXPRESSION)) {
          builder.add(from + match.index, from + match.index + match[0].length, mark('expression'));
        }
      } else if (plan.body?.kind === 'patch' && text) {
        const kind = patchLine(text);
        if (kind) {
          builder.add(from, line.to, mark(kind));
        }
      }
    }
  }
  return builder.finish();
}

/** What a line of a patch is: its frame, a line that comes, one that goes; empty: neither. */
export function patchLine(text: string): string {
  if (text.startsWith('*** ') || text.startsWith('@@')) {
    return 'meta';
  }
  return text.startsWith('+') ? 'inserted' : text.startsWith('-') ? 'deleted' : '';
}
