/** Draws a saved card in JupyterLab and Notebook: the same picture the live card showed, inert but for links, copying and "run again". */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { actions } from './actions';
import { CARD_MIME, disposeCard, renderCard } from './card';
import type { CardCallbacks } from './card';
import { checkedPart, checkedRun } from './checked';
import { trans } from './i18n';
import { bridge } from './messages';
import { drawNearby, forget } from './nearby';
import { disposeRun, renderRun, RUN_MIME } from './run';

/** Below text/html (60) and above the widget view's 0, so that a live card is drawn live. */
const RANK = 30;

/** One card in one output area. */
class CardRenderer extends Widget implements IRenderMime.IRenderer {
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const callbacks: CardCallbacks = {};
    if (bridge()) {
      callbacks.open = spill => bridge()?.open(this.node, '', spill);
      callbacks.openFile = (path, line) => bridge()?.openFile?.(this.node, '', path, line);
    }
    const runner = {
      canRun: () => bridge()?.canRun?.(this.node) ?? false,
      run: (source: string) => bridge()?.runAgain?.(this.node, source)
    };
    callbacks.more = part => actions(part, runner);
    const { data } = model;
    const plain = data['text/plain'] ?? '';
    const words = Array.isArray(plain) ? plain.join('') : String(plain);
    this.clear();
    drawNearby(this.node, words, () => {
      this.node.replaceChildren();
      const run = checkedRun(data[RUN_MIME]);
      const part = run ? undefined : checkedPart(data[CARD_MIME]);
      if (run) {
        renderRun(this.node, run, callbacks);
      } else if (part) {
        renderCard(this.node, part, callbacks);
      } else {
        const text = document.createElement('pre');
        text.textContent = words || trans.__('A tool card of a later version; update opencode-jupyter to see it.');
        this.node.append(text);
      }
    });
  }

  dispose(): void {
    this.clear();
    super.dispose();
  }

  private clear(): void {
    forget(this.node);
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
