/** The live card of a model's run; its Python side is `opencode_jupyter/jupyter/agent/card.py`. */

import css from '../style/card.css';
import runCss from '../style/run.css';
import type { CardCallbacks } from './card';
import { live } from './live';
import type { Model } from './live';
import { disposeRun, renderRun, updateRun } from './run';
import type { RunUpdate, RunWhole } from './run';

/** Shows the run of `model`; `more` asks the kernel for the whole of it. Gives what ends that. */
function showRun(model: Model, el: HTMLElement, callbacks: CardCallbacks, more: () => void): () => void {
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

export default live('run', css + runCss, showRun);
