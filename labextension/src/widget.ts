/** The live card of a call; its Python side is `opencode_jupyter/jupyter/cards/call_card.py`. */

import css from '../style/card.css';
import { showCall } from './card/showCall';
import { createWidget } from './kernel/liveWidget';

export default createWidget('card', css, showCall);
