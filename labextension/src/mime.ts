/** Draws a saved card in JupyterLab and Notebook: the same picture the live card showed, inert but for its link. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { CARD_MIME, disposeCard, renderCard } from './card';
import type { CardCallbacks, CardPart } from './card';
import { trans } from './i18n';
import { bridge } from './messages';
import { disposeRun, renderRun, RUN_MIME } from './run';
import type { RunPart } from './run';

/** Below text/html (60) and above the widget view's 0, so that a live card is drawn live. */
const RANK = 30;

/** Whether `data` is a card of a version that is known here. */
function isCard(data: unknown): data is CardPart {
  const part = data as Partial<CardPart> | null;
  return part?.v === 1 && typeof part.state === 'object' && typeof part.ui === 'object';
}

/** Whether `data` is a run of a version that is known here. */
function isRun(data: unknown): data is RunPart {
  const run = data as Partial<RunPart> | null;
  return run?.v === 1 && typeof run.agent === 'string' && Array.isArray(run.items);
}

/** One card in one output area. */
class CardRenderer extends Widget implements IRenderMime.IRenderer {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const callbacks: CardCallbacks = {};
    if (bridge()) {
      callbacks.open = spill => bridge()?.open(this.node, '', spill);
      callbacks.openFile = (path, line) => bridge()?.openFile?.(this.node, '', path, line);
    }
    const run = model.data[RUN_MIME] as unknown;
    if (isRun(run)) {
      renderRun(this.node, run, callbacks);
      return;
    }
    const data = model.data[CARD_MIME] as unknown;
    if (isCard(data)) {
      renderCard(this.node, data, callbacks);
      return;
    }
    this.clear();
    const plain = document.createElement('pre');
    plain.textContent = String(model.data['text/plain'] ?? trans.__('A tool card of a later version; update opencode-jupyter to see it.'));
    this.node.append(plain);
  }

  dispose(): void {
    this.clear();
    super.dispose();
  }

  private clear(): void {
    disposeRun(this.node);
    disposeCard(this.node);
  }
}

const extension: IRenderMime.IExtension = {
  id: 'opencode-jupyter:card',
  description: 'Draws the cards of tool calls and of models’ runs of opencode_jupyter.',
  // it draws from data with text nodes only, so an untrusted notebook may show it
  rendererFactory: { safe: true, mimeTypes: [CARD_MIME, RUN_MIME], createRenderer: () => new CardRenderer() },
  rank: RANK,
  dataType: 'json'
};

export default extension;
