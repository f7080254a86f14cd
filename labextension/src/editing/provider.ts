/**
 * JupyterLab's menu of completions on our lines. The kernel is asked on its control channel, which a busy one hears too;
 * when it does not answer at once, the tools that the page keeps are offered.
 */

import type { CompletionHandler, ICompletionContext, ICompletionProvider } from '@jupyterlab/completer';
import type { Kernel } from '@jupyterlab/services';

import { requestKernel } from '../kernel';
import { preferences } from '../preferences';
import { explainMatch, lines } from './explain';
import { codePoints, indexOf, LONGEST, magicOf } from './line';
import type { Magic } from './line';
import type { Ask, SchemaStore } from './schemas';
import { suggest } from './suggest';
import type { CompleteReply, Match, SchemasReply } from './token';

/**
 * How long the kernel may take: where the page can answer by itself; where the kernel may add files and variables, if it
 * answered the last time; and where only the kernel can answer.
 */
const QUICK_MS = 70;
const MORE_MS = 300;
const PATIENT_MS = 700;

/** A place in a cell. */
export interface Place {
  /** Where its line begins in the cell. */
  begin: number;
  /** The line up to the place. */
  until: string;
  /** The cell's first line, if that is another one. */
  first: string | null;
  /** None in the request below `%%agent`. */
  magic: Magic | null;
}

/** The place `index` of `text`, if a line of ours is there, or the body of `%%agent`. */
export function placeOf(text: string, index: number): Place | null {
  const begin = text.lastIndexOf('\n', index - 1) + 1;
  const until = text.slice(begin, index);
  if (until.length > LONGEST) {
    return null;
  }
  const first = begin ? text.slice(0, text.indexOf('\n')) : null;
  const magic = magicOf(until, first === null);
  const inside = magic && /\s/.test(until.charAt(magic.end)) ? magic : null;
  if (!inside && !(first && /^%%agent(?!\w)/.test(first))) {
    return null;
  }
  return { begin, until, first, magic: inside };
}

export class ToolCompleter implements ICompletionProvider {
  readonly identifier = 'opencode-jupyter:completer';
  /** Above the kernel's (550); below those that bring a menu of their own, which the first one draws. */
  readonly rank = 600;
  readonly renderer = null;
  /** Kernels that did not answer in time and have not answered since. */
  private readonly late = new Set<string>();

  /** @param ask - for tests; the control channel otherwise. */
  constructor(
    private readonly store: SchemaStore,
    private readonly ask: Ask = requestKernel
  ) {}

  async isApplicable(context: ICompletionContext): Promise<boolean> {
    return this.answers(context);
  }

  /** Whether the cursor is on a line of ours, and there is a kernel that knows us or is on its way. */
  answers({ editor, session }: ICompletionContext): boolean {
    if (!editor || !preferences().completions) {
      return false;
    }
    const kernel = session?.kernel;
    if (!this.store.kernel(kernel?.id) && !this.store.of(kernel?.id, onItsWay(kernel))) {
      return false;
    }
    const { sharedModel } = editor.model;
    return placeOf(sharedModel.getSource(), editor.getOffsetAt(editor.getCursorPosition())) !== null;
  }

  async fetch(
    request: CompletionHandler.IRequest,
    context: ICompletionContext
  ): Promise<CompletionHandler.ICompletionItemsReply> {
    const { text, offset } = request;
    const index = indexOf(text, offset);
    const place = placeOf(text, index);
    const nothing = { start: offset, end: offset, items: [] };
    if (!place) {
      return nothing;
    }
    const connection = context.session?.kernel;
    const schemas = this.store.of(connection?.id, onItsWay(connection));
    const own = schemas && place.magic ? suggest(schemas, place.magic, place.until) : undefined;
    const quick = own?.whole || this.late.has(connection?.id ?? '');
    const patience = own?.matches.length || own?.whole ? (quick ? QUICK_MS : MORE_MS) : PATIENT_MS;
    const told = await this.askKernel(connection, place, patience, schemas?.revision);
    // the kernel repeats a word that it has nothing for
    const typed = told ? place.until.slice(place.until.length - (codePointsBack(place.until, told) ?? 0)) : '';
    const matches = told?.matches?.filter(({ text, type }) => type !== 'text' || text !== typed) ?? own?.matches ?? [];
    if (!matches.length) {
      return nothing;
    }
    const start = told ? place.until.length - typed.length : (own?.start ?? place.until.length);
    const before = place.until.slice(0, start);
    return {
      start: codePoints(text, place.begin + start),
      end: offset,
      items: matches.map(match => this.item(match, schemas, place.magic, before))
    };
  }

  private item(match: Match, schemas: SchemasReply | undefined, magic: Magic | null, before: string): CompletionHandler.ICompletionItem {
    const help = schemas && magic ? explainMatch(schemas, magic, before, match) : undefined;
    const documentation = help?.found ? lines(help).join('\n\n') : undefined;
    return { label: match.text, insertText: match.text, type: match.type, ...(documentation && { documentation }) };
  }

  /** What the kernel offers; nothing if it is late, gone, or does not know us. */
  private async askKernel(
    connection: Kernel.IKernelConnection | null | undefined,
    { first, until }: Place,
    patience: number,
    revision: number | undefined
  ): Promise<CompleteReply | undefined> {
    if (!connection || !this.store.kernel(connection.id)) {
      return undefined;
    }
    // the first line says what cell it is; the others are of no interest
    const code = first === null ? until : `${first}\n${until}`;
    const cursor_pos = codePoints(code, code.length);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<undefined>(resolve => {
      timer = setTimeout(() => {
        this.late.add(connection.id);
        resolve(undefined);
      }, patience);
    });
    const answer = this.ask(connection, { kind: 'complete', code, cursor_pos }).then(
      reply => {
        const told = reply as CompleteReply;
        this.late.delete(connection.id);
        if (told.revision !== undefined && told.revision !== revision) {
          void this.store.refresh(connection.id);
        }
        return told.matches ? told : undefined;
      },
      () => undefined
    );
    const told = await Promise.race([answer, late]);
    clearTimeout(timer);
    return told;
  }
}

/** How many characters at the end of `until` the kernel's suggestions take the place of. */
function codePointsBack(until: string, { start = 0, end = 0 }: CompleteReply): number {
  let length = 0;
  for (let left = end - start; left > 0 && length < until.length; left--) {
    const low = until.charCodeAt(until.length - length - 1);
    length += low >= 0xdc00 && low <= 0xdfff ? 2 : 1;
  }
  return length;
}

/** Whether no answer can be had of the kernel yet, but will be. */
function onItsWay(kernel: Kernel.IKernelConnection | null | undefined): boolean {
  return !kernel || ['unknown', 'starting', 'restarting', 'autorestarting'].includes(kernel.status);
}

/** What is needed of JupyterLab's manager of completions beyond its interface. */
interface Providers {
  getProviders?(): Map<string, ICompletionProvider>;
}

const OTHERS = ['CompletionProvider:kernel', 'CompletionProvider:context'];

/**
 * Keeps JupyterLab's own two providers off the lines that `ours` answers. The menu waits for every applicable provider,
 * a second for a busy kernel's, whose late answer would be the same as ours; the other offers words of the cell.
 */
export function takeOver(manager: unknown, ours: ToolCompleter): void {
  const providers = (manager as Providers).getProviders?.();
  for (const id of OTHERS) {
    const other = providers?.get(id);
    if (other) {
      const before = other.isApplicable.bind(other);
      other.isApplicable = async context => !ours.answers(context) && before(context);
    }
  }
}
