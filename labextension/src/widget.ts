/** The live card of a call; its Python side is `opencode_jupyter/jupyter/card.py`. */

import css from '../style/card.css';
import { disposeCard, renderCard, updateTail } from './card';
import type { CardCallbacks, TailUpdate } from './card';
import { live } from './live';
import type { Model } from './live';

/** Shows the call of `model`; gives what ends that. */
function showCall(model: Model, el: HTMLElement, callbacks: CardCallbacks): () => void {
  const draw = (): void => {
    const part = model.get('part');
    // before its first state, and after the kernel closed it, a card has no part
    if (part?.state && part.ui) {
      renderCard(el, part, callbacks);
    }
  };
  const message = (content: { kind?: string } & Partial<TailUpdate>): void => {
    if (content.kind === 'tail') {
      const { text = '', lines, bytes, progress } = content;
      updateTail(el, { text, lines, bytes, progress });
    }
  };
  model.on('change:part', draw);
  model.on('msg:custom', message);
  draw();
  return () => {
    model.off('change:part', draw);
    model.off('msg:custom', message);
    disposeCard(el);
  };
}

export default live('card', css, showCall);
