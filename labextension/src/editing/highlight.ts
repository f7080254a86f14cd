/**
 * The look of our cells: the body of `%%tool bash` as a shell script, of `%%tool write` as the file it becomes, of
 * `%%agent` as prose; the parts of a `%tool` line in their own colours. A cell's language is exchanged, not painted over,
 * so that comments, brackets and indentation go by it too; when its first line changes, all of it is as before.
 */

import { Language, language, StreamLanguage } from '@codemirror/language';
import { Prec, RangeSetBuilder, StateEffect, StateField } from '@codemirror/state';
import type { Extension, Text } from '@codemirror/state';
import { Decoration, ViewPlugin } from '@codemirror/view';
import type { DecorationSet, EditorView, ViewUpdate } from '@codemirror/view';

import { LONGEST, magicOf } from './magicLine';
import { masked } from './masking';
import { bodyOf, EXPRESSION, tokens } from './tokens';
import type { Body } from './tokens';

/** A cell of a Jupyter notebook with an IPython kernel. */
const IPYTHON = 'text/x-ipython';

/** Gives the languages that JupyterLab has. */
export interface Languages {
  /** By name, or by the name of a file; null: none such. Loaded when first wanted. */
  load(request: { name?: string; file?: string }): Promise<Language | null>;
}

/** What a cell is. */
interface Plan {
  body: Body | null;
  /** Names its language; empty: that of any cell. */
  key: string;
}

const NO_PLAN: Plan = { body: null, key: '' };
/** Of a cell of Python with lines of ours. */
const LINES: Plan = { body: null, key: 'lines' };
const languageLoaded = StateEffect.define<{ key: string; language: Language }>();
/** What no language is known for: plain text, and nothing of Python. */
const plain = StreamLanguage.define({ name: 'plain', token: stream => (stream.skipToEnd(), null) });

function keyOf(body: Body): string {
  return 'name' in body ? `${body.kind}:${body.kind === 'file' ? extension(body.name) : body.name}` : body.kind;
}

function extension(name: string): string {
  const dot = name.lastIndexOf('.');
  return dot < 0 ? name : name.slice(dot);
}

/** The plan of a cell. */
function planOf(doc: Text): Plan {
  const body = bodyOf(doc.line(1).text.slice(0, LONGEST));
  if (body) {
    return { body, key: keyOf(body) };
  }
  for (const line of doc.iterLines()) {
    if (magicOf(line, false)) {
      return LINES;
    }
  }
  return NO_PLAN;
}

interface CellLanguage {
  plan: Plan;
  /** In its place until it is loaded: plain text for a body, nothing for Python. */
  language: Language | null;
}

/** The editor extension; `mimeType` gives that of the editor's model. */
export function highlighting(languages: Languages, mimeType: () => string): Extension {
  const heldLanguage = StateField.define<CellLanguage>({
    create: state => cellLanguage(mimeType() === IPYTHON ? planOf(state.doc) : NO_PLAN),
    update(value, { newDoc, docChanged, reconfigured, effects }) {
      // reconfigured: the editor's own language came or went; so may have ours
      const now = docChanged || reconfigured ? planOf(newDoc) : value.plan;
      const plan = mimeType() === IPYTHON ? now : NO_PLAN;
      const next = plan.key === value.plan.key ? value : cellLanguage(plan);
      const loaded = effects.find(effect => effect.is(languageLoaded) && effect.value.key === next.plan.key);
      return loaded ? { plan: next.plan, language: loaded.value.language } : next;
    }
  });

  const cellLanguage = (plan: Plan): CellLanguage => ({ plan, language: plan.body ? plain : null });

  const load = async (plan: Plan): Promise<Language | null> => {
    const { body } = plan;
    if (!body) {
      const python = plan === LINES ? await languages.load({ name: 'ipython' }) : null;
      return python && masked(python, false);
    }
    const request = body.kind === 'agent' ? { name: 'Markdown' } : body.kind === 'file' ? { file: body.name } : 'name' in body ? { name: body.name } : null;
    const inner = request && (await languages.load(request));
    return inner && masked(inner, true);
  };

  const painter = ViewPlugin.fromClass(
    class {
      decorations: DecorationSet = Decoration.none;
      private loadedKey = '';

      constructor(view: EditorView) {
        this.follow(view);
      }

      update(update: ViewUpdate): void {
        const now = update.state.field(heldLanguage);
        if (update.docChanged || update.viewportChanged || now !== update.startState.field(heldLanguage)) {
          this.follow(update.view);
        }
      }

      private follow(view: EditorView): void {
        const { plan } = view.state.field(heldLanguage);
        this.decorations = plan === NO_PLAN ? Decoration.none : paint(view, plan);
        if (this.loadedKey !== plan.key) {
          this.loadedKey = plan.key;
          void load(plan)
            .then(loaded => {
              if (loaded && this.loadedKey === plan.key) {
                view.dispatch({ effects: languageLoaded.of({ key: plan.key, language: loaded }) });
              }
            })
            .catch(() => undefined); // then the cell stays as plain as it is
        }
      }
    },
    { decorations: value => value.decorations }
  );

  const chosen = language.computeN([heldLanguage], state => {
    const { language: own } = state.field(heldLanguage);
    return own ? [own] : [];
  });
  // CodeMirror looks for the language as soon as there may be one, and an editor that has none would have null
  return [heldLanguage, Prec.highest(chosen), Prec.highest(painter), Prec.lowest(language.of(plain))];
}

const marks = new Map<string, Decoration>();

function mark(kind: string): Decoration {
  let decoration = marks.get(kind);
  if (!decoration) {
    decoration = Decoration.mark({ class: `oc-tok oc-tok-${kind}` });
    marks.set(kind, decoration);
  }
  return decoration;
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
