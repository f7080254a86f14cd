/** JupyterLab's menu of completions on our lines. The kernel is asked on its control channel, which a busy one hears too. */

import type { CompletionHandler, ICompletionContext, ICompletionProvider } from '@jupyterlab/completer';
import { Text } from '@jupyterlab/coreutils';

import { requestKernel } from '../kernel/requests';
import type { KernelHub } from '../kernel/hub';
import { preferences } from '../card/preferences';
import { helpLines } from './hover';
import { LONGEST, magicOf } from './magicLine';
import type { Magic } from './magicLine';
import type { CompleteReply } from './messages';

/** How often a kernel is asked that has found nothing in its time yet: the first question imports what answers. */
const ATTEMPTS = 5;

/** A place in a cell. */
export interface CellPosition {
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
export function positionIn(text: string, index: number): CellPosition | null {
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

  /** @param ask - for tests; the control channel otherwise. */
  constructor(
    private readonly hub: Pick<KernelHub, 'kernels'>,
    private readonly ask: typeof requestKernel = requestKernel
  ) {}

  async isApplicable(context: ICompletionContext): Promise<boolean> {
    return this.answers(context);
  }

  /** Whether the cursor is on a line of ours, and its kernel knows us. */
  answers({ editor, session }: ICompletionContext): boolean {
    if (!editor || !preferences().completions || !this.hub.kernels().some(({ id }) => id === session?.kernel?.id)) {
      return false;
    }
    const { sharedModel } = editor.model;
    return positionIn(sharedModel.getSource(), editor.getOffsetAt(editor.getCursorPosition())) !== null;
  }

  async fetch({ text, offset }: CompletionHandler.IRequest, { session }: ICompletionContext): Promise<CompletionHandler.ICompletionItemsReply> {
    const position = positionIn(text, Text.charIndexToJsIndex(offset, text));
    const nothing = { start: offset, end: offset, items: [] };
    if (!position || !session?.kernel) {
      return nothing;
    }
    const { begin, first, until } = position;
    // the first line says what cell it is; the others are of no interest
    const code = first === null ? until : `${first}\n${until}`;
    const request = { kind: 'complete' as const, code, cursor_pos: [...code].length };
    let reply: CompleteReply = { late: true };
    for (let attempt = 0; reply.late && attempt < ATTEMPTS; attempt++) {
      reply = (await this.ask(session.kernel, request).catch(() => ({}))) as CompleteReply;
    }
    const characters = [...until];
    const start = characters.slice(0, characters.length - (reply.end ?? 0) + (reply.start ?? 0)).join('').length;
    // the kernel repeats a word that it has nothing for
    const matches = (reply.matches ?? []).filter(match => match.type !== 'text' || match.text !== until.slice(start));
    if (!matches.length) {
      return nothing;
    }
    return {
      start: Text.jsIndexToCharIndex(begin + start, text),
      end: offset,
      items: matches.map(({ text: label, type, help }) => ({
        label,
        insertText: label,
        type,
        ...(help && { documentation: helpLines(help).join('\n\n') })
      }))
    };
  }
}

/** What is needed of JupyterLab's manager of completions beyond its interface. */
interface Providers {
  getProviders?(): Map<string, ICompletionProvider>;
}

const JUPYTERLAB_PROVIDERS = ['CompletionProvider:kernel', 'CompletionProvider:context'];

/**
 * Keeps JupyterLab's own two providers off the lines that `ours` answers. The menu waits for every applicable provider,
 * a second for a busy kernel's, whose late answer would be the same as ours; the other offers words of the cell.
 */
export function replaceProviders(manager: unknown, ours: ToolCompleter): void {
  const providers = (manager as Providers).getProviders?.();
  for (const id of JUPYTERLAB_PROVIDERS) {
    const other = providers?.get(id);
    if (other) {
      const before = other.isApplicable.bind(other);
      other.isApplicable = async context => !ours.answers(context) && before(context);
    }
  }
}
