/** Where the card of a call stands in the documents of this page, and going there. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { CARD_MIME } from '../../card';
import type { CardPart } from '../../card';
import type { KernelDocument } from '../../kernel/requests';
import { RUN_MIME } from '../../run';
import type { RunPart } from '../../run';
import { joinSaved } from '../../card/savedBundle';

/** How often, and how long, a cell that scrolls into view is looked at for its card. */
const POLL_MS = 50;
const POLLS = 40;

/** The card of a call in `root`, by the call's id or its part's, if it is drawn. */
export function findCard(root: ParentNode, id: string): HTMLElement | null {
  const name = CSS.escape(id);
  return root.querySelector<HTMLElement>(`.oc-card[data-call="${name}"], .oc-card[data-part="${name}"]`);
}

/** Whether a person can see some of `node` now. */
export function isInSight(node: HTMLElement): boolean {
  const { top, bottom, width, height } = node.getBoundingClientRect();
  if (document.hidden || width === 0 || height === 0) {
    return false;
  }
  let [low, high] = [top, bottom];
  // what the body hides is outside the window
  for (let parent = node.parentElement; parent && parent !== document.body; parent = parent.parentElement) {
    if (getComputedStyle(parent).overflowY !== 'visible') {
      const frame = parent.getBoundingClientRect();
      [low, high] = [Math.max(low, frame.top), Math.min(high, frame.bottom)];
    }
  }
  return Math.min(high, window.innerHeight) - Math.max(low, 0) > Math.min(20, height / 2);
}

/** The index of the cell whose outputs hold the card or run `key`; -1: none does. */
export function cellIndexOf(panel: Pick<NotebookPanel, 'content'>, key: string): number {
  const cells = panel.content?.model?.cells;
  for (let index = (cells?.length ?? 0) - 1; index >= 0; index--) {
    const { outputs } = cells?.get(index) as Partial<ICodeCellModel>;
    for (let at = 0; at < (outputs?.length ?? 0); at++) {
      const { data = {}, metadata } = outputs?.get(at) ?? {};
      const card = joinSaved(data[CARD_MIME], metadata) as Partial<CardPart> | undefined;
      const run = joinSaved(data[RUN_MIME], metadata) as Partial<RunPart> | undefined;
      const inRun = (): boolean =>
        !!run?.items?.some?.(item => item.kind === 'call' && (item.part?.id === key || item.part?.callID === key));
      if (card?.callID === key || card?.id === key || run?.id === key || inRun()) {
        return index;
      }
    }
  }
  return -1;
}

/**
 * Brings the card of a call into view and gives it the focus.
 *
 * @param key - What identifies the outermost card; a call inside another has no output of its own.
 * @returns The card; null where it is not shown any more (its output was cleared, its cell deleted).
 */
export async function goToCard(
  app: Pick<JupyterFrontEnd, 'shell'>,
  document: KernelDocument,
  callID: string,
  key: string = callID
): Promise<HTMLElement | null> {
  const panel = document as NotebookPanel; // or a console, which has no such content
  app.shell.activateById(panel.id);
  const { content } = panel;
  const index = cellIndexOf(panel, key);
  if (index >= 0 && content) {
    content.activeCellIndex = index;
    await content.scrollToCell(content.widgets[index], 'auto');
  }
  for (let look = 0; look < POLLS; look++) {
    const card = findCard(panel.node, callID) ?? findCard(panel.node, key);
    if (card) {
      card.scrollIntoView({ block: 'nearest' });
      card.focus({ preventScroll: true });
      return card;
    }
    await new Promise(resolve => setTimeout(resolve, POLL_MS));
  }
  return null;
}
