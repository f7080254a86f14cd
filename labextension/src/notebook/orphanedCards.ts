/**
 * Puts something in place of live cards that are gone: JupyterLab would show an empty widget. A page that was reloaded
 * during the call missed what the card became, and asks the kernel for it. Where the kernel ended before the call did,
 * the output also has the card of a call whose end nobody knows; without the widget, that is what is drawn.
 */

import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';

import { isLive } from '../card/wording';
import { TOOL_BODIES } from '../card/toolBodies';
import { CARD_MIME } from '../card/types';
import type { CardPart } from '../card/types';
import { trans } from '../card/i18n';
import { COMM_TARGET } from '../kernel/liveComms';
import { ENDED, requestKernel, serverRunsCells } from '../kernel/requests';
import type { SettledReply } from '../kernel/messages';
import { RUN_MIME } from '../run/types';
import type { CallItem, RunPart } from '../run/types';
import { isRunning } from '../run/wording';
import { joinSaved } from '../card/savedBundle';

export const WIDGET_MIME = 'application/vnd.jupyter.widget-view+json';
/** How often a page that was opened during a call looks whether it is over. */
const POLL_MS = 2_000;

/** A display output as JSON. */
interface Output {
  data?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

type Bundle = { data: Record<string, unknown>; metadata?: Record<string, unknown> };

/** The id of the call or run that an output shows. */
function shownId({ data = {}, metadata }: Partial<Bundle>): string {
  const card = joinSaved(data[CARD_MIME], metadata) as { callID?: string } | undefined;
  const run = joinSaved(data[RUN_MIME], metadata) as { id?: string } | undefined;
  return card?.callID ?? run?.id ?? '';
}

/** An output with a live card: its cell, its place there, its data, its widget, its call or run. */
interface LiveCard {
  cell: ICodeCellModel;
  index: number;
  output: Output;
  modelId: string;
  call: string;
}

/** The outputs of a cell; none of one that is no code. */
function outputsOf({ outputs }: Partial<ICodeCellModel>): Output[] {
  return Array.from({ length: outputs?.length ?? 0 }, (_, index) => outputs?.get(index).toJSON() as Output);
}

/** Every output with a live card. */
function liveCards({ content }: NotebookPanel): LiveCard[] {
  const cells = content.model?.cells;
  return Array.from({ length: cells?.length ?? 0 }, (_, index) => cells?.get(index) as ICodeCellModel).flatMap(cell =>
    outputsOf(cell).flatMap((output, index) => {
      const { data = {} } = output;
      const view = data[WIDGET_MIME] as { model_id?: string } | undefined;
      return view && (data[CARD_MIME] ?? data[RUN_MIME]) ? [{ cell, index, output, modelId: view.model_id ?? '', call: shownId(output) }] : [];
    })
  );
}

/**
 * Removes the live cards that a later output of the same cell shows settled. A server that runs the cells
 * (jupyter-server-documents) appends what should have taken the live card's place.
 */
export function dropSuperseded(panel: NotebookPanel): void {
  for (const { cell, index, call } of liveCards(panel).reverse()) {
    const settles = (output: Output): boolean => shownId(output) === call && !(WIDGET_MIME in (output.data ?? {}));
    if (call && outputsOf(cell).slice(index + 1).some(settles)) {
      cell.sharedModel.updateOutputs(index, index + 1, []);
    }
  }
}

/** Whether nothing was run of `part`: it waited for its first approval, or it is a list of calls that all did. */
function isUntouched({ ui, tool }: CardPart): boolean {
  const inside = TOOL_BODIES.get(tool) === 'tool_calls' ? (ui.children ?? []) : [];
  return !!ui.untouched || (inside.length > 0 && inside.every(isUntouched));
}

/** `part`, and what is inside it, as the end of the kernel left it. */
function endPart(part: CardPart): CardPart {
  if (!isLive(part)) {
    return part;
  }
  const { ask: _ask, question: _question, untouched: _untouched, children, ...ui } = part.ui;
  const untouched = isUntouched(part);
  const error = untouched
    ? trans.__('The kernel ended while this call waited for approval. Nothing was run.')
    : trans.__('State unknown: the kernel ended before the call did.');
  return {
    ...part,
    state: { ...part.state, status: 'error', error },
    ui: { ...ui, outcome: untouched ? 'cancelled' : 'ended', ...(children && { children: children.map(endPart) }) }
  };
}

/** `run`, and the calls in it, as the end of the kernel left them. */
function endRun({ retry: _retry, ...run }: RunPart): RunPart {
  const calls = run.items.filter(item => item?.kind === 'call' && isLive(item.part)) as CallItem[];
  const waits = ({ id, part }: CallItem): boolean => {
    const inside = calls.filter(({ parent }) => parent === id);
    return isUntouched(part) || (inside.length > 0 && inside.every(waits));
  };
  const endCall = ({ id, part }: CallItem): CardPart => {
    const ended = endPart(part);
    const error = trans.__('The kernel ended while a call inside this one waited for approval.');
    const waiting = waits({ id, part, kind: 'call' }) && !isUntouched(part);
    return waiting ? { ...ended, state: { ...ended.state, error }, ui: { ...ended.ui, outcome: 'cancelled' } } : ended;
  };
  const text =
    calls.length && calls.every(waits)
      ? trans.__('The kernel ended while this run waited for approval. What waited was not run.')
      : trans.__('State unknown: the kernel ended before the run did.');
  const items = run.items.filter(Boolean).map(item => (item.kind === 'call' ? { ...item, part: endCall(item) } : item));
  return { ...run, items, status: 'stopped', outcome: 'ended', end: { tone: 'off', text } };
}

/** What replaces a live card that showed `last` in the end: more is known of it than what was saved when it was displayed. */
function endedBundle(last: CardPart | RunPart | undefined): Bundle | undefined {
  if (last && 'items' in last) {
    const ended = isRunning(last) ? endRun(last) : undefined;
    return ended && { data: { [RUN_MIME]: ended, 'text/plain': `${ended.agent}: ${ended.end?.text}` } };
  }
  if (!last?.ui || !isLive(last)) {
    return undefined;
  }
  const ended = endPart(last);
  return { data: { [CARD_MIME]: ended, 'text/plain': `${ended.tool} ${ended.ui.label}: ${ended.state.error}` } };
}

/**
 * Takes the widget out of the outputs that have a card beside it and whose widget is `gone`.
 *
 * @param settled - What came of some calls, by their id.
 * @param last - The last state of a widget's call or run, if it is known.
 */
export function replaceOrphans(
  panel: NotebookPanel,
  gone: (modelId: string) => boolean,
  settled: Record<string, Bundle> = {},
  last: (modelId: string) => CardPart | RunPart | undefined = () => undefined
): number {
  let dropped = 0;
  for (const { cell, index, output, modelId, call } of liveCards(panel)) {
    if (gone(modelId)) {
      const { data: all = {}, metadata = {} } = settled[call] ?? endedBundle(last(modelId)) ?? output;
      const { [WIDGET_MIME]: _, ...data } = all;
      cell.outputs.set(index, { ...output, data, metadata } as never);
      dropped++;
    }
  }
  return dropped;
}

/** What the kernel knows to have become of `calls`; nothing where it can't tell. */
async function requestSettled(kernel: Kernel.IKernelConnection, calls: string[]): Promise<Record<string, Bundle>> {
  try {
    const { cards = {}, metadata = {} } = (await requestKernel(kernel, { kind: 'settled', callIDs: calls })) as SettledReply;
    return Object.fromEntries(Object.entries(cards).map(([call, data]) => [call, { data, metadata: metadata[call] }]));
  } catch {
    return {};
  }
}

/** Watches a notebook: when it is opened, until the live cards it was opened with are over, and when its kernel ends. */
export async function watchNotebook(
  panel: NotebookPanel,
  context: NotebookPanel['context'],
  last?: (modelId: string) => CardPart | RunPart | undefined
): Promise<void> {
  const { sessionContext } = context;
  /** True if live cards are left. */
  const check = async (): Promise<boolean> => {
    dropSuperseded(panel);
    const kernel = sessionContext.session?.kernel;
    if (!kernel) {
      replaceOrphans(panel, () => true, {}, last);
      return false;
    }
    if (!liveCards(panel).length) {
      return false;
    }
    try {
      // a busy kernel answers when its cell is over
      const { content } = await kernel.requestCommInfo({ target_name: COMM_TARGET });
      if (content.status !== 'ok' || sessionContext.session?.kernel !== kernel) {
        return false;
      }
      const gone = (id: string): boolean => !(id in content.comms);
      const calls = liveCards(panel).filter(({ modelId }) => gone(modelId)).map(({ call }) => call);
      // where the server runs the cells it appends the settled card
      if (calls.length && !serverRunsCells()) {
        replaceOrphans(panel, gone, await requestSettled(kernel, calls), last);
      }
    } catch {
      // the kernel went away meanwhile, which its status tells
    }
    return liveCards(panel).length > 0;
  };
  /** This page does not follow the cells that ran when it was opened, so it has to look. */
  const follow = async (): Promise<void> => {
    while ((await check()) && !panel.isDisposed) {
      await new Promise(resolve => setTimeout(resolve, POLL_MS));
    }
  };
  sessionContext.statusChanged.connect((_, status) => {
    if (ENDED.includes(status)) {
      replaceOrphans(panel, () => true, {}, last);
    }
  });
  await context.ready;
  await sessionContext.ready;
  sessionContext.kernelChanged.connect(() => void follow());
  void follow();
}
