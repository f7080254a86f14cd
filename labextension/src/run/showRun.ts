/** Shows the run of a live model, be it anywidget's or one read off the kernel's messages. */

import type { CardCallbacks } from '../card';
import type { Model } from '../kernel/liveWidget';
import { disposeRun, renderRun, updateRun } from './runView';
import type { RunUpdate, RunWhole } from './types';

/** Shows the run of `model`; `more` asks the kernel for the whole of it. Gives what ends that. */
export function showRun(model: Model, el: HTMLElement, callbacks: CardCallbacks, more: () => void): () => void {
  const run = model.get('run');
  if (run?.items) {
    renderRun(el, run, callbacks);
  }
  const message = (content: RunUpdate | RunWhole): void => {
    if (content.kind === 'whole') {
      renderRun(el, content.run, callbacks);
    } else if (content.kind === 'run' && !updateRun(el, content)) {
      more();
    }
  };
  model.on('msg:custom', message);
  return () => {
    model.off('msg:custom', message);
    disposeRun(el);
  };
}
