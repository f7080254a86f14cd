/** Shows the call of a live model, be it anywidget's or one read off the kernel's messages. */

import type { Model } from '../kernel/liveWidget';
import { disposeCard, renderCard, updateTail } from './cardView';
import type { CardCallbacks, TailUpdate } from './types';

/** Shows the call of `model`; gives what ends that. */
export function showCall(model: Model, el: HTMLElement, callbacks: CardCallbacks): () => void {
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
