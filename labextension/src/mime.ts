/** Draws a saved card in JupyterLab and Notebook: the same picture the live card showed, inert but for links, copying and "run again". */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { actions } from './card/callActions';
import { CARD_MIME, disposeCard, renderCard } from './card';
import type { CardCallbacks } from './card';
import { showCall } from './card/showCall';
import { checkedPart, checkedRun } from './card/savedCheck';
import { trans } from './card/i18n';
import { connectCard } from './kernel/liveWidget';
import type { Model } from './kernel/liveWidget';
import { WIDGET_MIME } from './notebook/orphanedCards';
import { bridge, openCallbacks } from './kernel/messages';
import { drawNearby, forget } from './card/lazyDrawing';
import { disposeRun, renderRun, RUN_MIME } from './run';
import { showRun } from './run/showRun';
import { joinSaved } from './card/savedBundle';

/** Below text/html (60) and above the widget view's 0, so that a live card is drawn live. */
const RANK = 30;

/** One card in one output area. */
class CardRenderer extends Widget implements IRenderMime.IRenderer {
  private disconnect: (() => void) | undefined;

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const runner = {
      canRun: () => bridge()?.canRun?.(this.node) ?? false,
      run: (source: string) => bridge()?.runAgain?.(this.node, source)
    };
    const callbacks: CardCallbacks = { ...openCallbacks(this.node), more: part => actions(part, runner) };
    const { data, metadata } = model;
    const plain = data['text/plain'] ?? '';
    const plainText = Array.isArray(plain) ? plain.join('') : String(plain);
    this.clear();
    const drawSaved = (): void => {
      this.node.replaceChildren();
      const run = checkedRun(joinSaved(data[RUN_MIME], metadata));
      const part = run ? undefined : checkedPart(joinSaved(data[CARD_MIME], metadata));
      if (run) {
        renderRun(this.node, run, callbacks);
      } else if (part) {
        renderCard(this.node, part, callbacks);
      } else {
        const text = document.createElement('pre');
        text.textContent = plainText || trans.__('A tool card of a later version; update opencode-jupyter to see it.');
        this.node.append(text);
      }
    };
    drawNearby(this.node, plainText, () => {
      const view = data[WIDGET_MIME] as { model_id?: unknown } | undefined;
      const widget = typeof view?.model_id === 'string' ? bridge()?.liveModel?.(this.node, view.model_id) : undefined;
      if (widget) {
        this.drawLive(widget, drawSaved);
      } else {
        drawSaved();
      }
    });
  }

  /** Draws a live card where JupyterLab, which trusts the cell's output not, draws no widget; `saved` until its state is known. */
  private drawLive(model: Model, drawSaved: () => void): void {
    this.disconnect = connectCard(model, this.node, (_, el, callbacks, more) => {
      let end: (() => void) | undefined;
      const start = (): void => {
        const show = model.get('run') ? showRun : model.get('part') ? showCall : undefined;
        if (show && !end) {
          this.disposeViews();
          end = show(model, el, callbacks, more);
        }
      };
      const close = (): void => this.clear();
      model.on('change:part', start);
      model.on('change:run', start);
      model.on('close', close);
      drawSaved();
      start();
      return () => {
        model.off('change:part', start);
        model.off('change:run', start);
        model.off('close', close);
        end?.();
      };
    });
  }

  dispose(): void {
    this.clear();
    super.dispose();
  }

  private clear(): void {
    forget(this.node);
    this.disconnect?.();
    this.disconnect = undefined;
    this.disposeViews();
  }

  private disposeViews(): void {
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
