/** Draws a saved card in JupyterLab and Notebook: the same picture the live card showed, inert but for its link. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { CARD_MIME, disposeCard, renderCard } from './card';
import type { CardCallbacks, CardPart } from './card';
import { bridge } from './messages';

/** Below text/html (60) and above the widget view's 0, so that a live card is drawn live. */
const RANK = 30;

/** Whether `data` is a card of a version that is known here. */
function isCard(data: unknown): data is CardPart {
  const part = data as Partial<CardPart> | null;
  return part?.v === 1 && typeof part.state === 'object' && typeof part.ui === 'object';
}

/** One card in one output area. */
class CardRenderer extends Widget implements IRenderMime.IRenderer {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const data = model.data[CARD_MIME] as unknown;
    if (isCard(data)) {
      const callbacks: CardCallbacks = {};
      if (bridge()) {
        callbacks.open = spill => bridge()?.open(this.node, '', spill);
      }
      renderCard(this.node, data, callbacks);
      return;
    }
    disposeCard(this.node);
    const plain = document.createElement('pre');
    plain.textContent = String(model.data['text/plain'] ?? 'A tool card of a later version; update opencode-jupyter to see it.');
    this.node.append(plain);
  }

  dispose(): void {
    disposeCard(this.node);
    super.dispose();
  }
}

const extension: IRenderMime.IExtension = {
  id: 'opencode-jupyter:card',
  description: 'Draws the tool cards of opencode_jupyter.',
  // it draws from data with text nodes only, so an untrusted notebook may show it
  rendererFactory: { safe: true, mimeTypes: [CARD_MIME], createRenderer: () => new CardRenderer() },
  rank: RANK,
  dataType: 'json'
};

export default extension;
