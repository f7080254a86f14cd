/** The live card of a model's run; its Python side is `opencode_jupyter/jupyter/cards/run_card.py`. */

import css from '../style/card.css';
import runCss from '../style/run.css';
import { createWidget } from './kernel/liveWidget';
import { showRun } from './run/showRun';

export default createWidget('run', css + runCss, showRun);
