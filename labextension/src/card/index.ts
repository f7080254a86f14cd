/** The card, framework-free: what the live widget and the JupyterLab renderer are both made of. */

export { disposeCard, renderCard, updateTail } from './cardView';
export * from './types';
