/** The card, framework-free: what the live widget and the JupyterLab renderer are both made of. */

export { ApprovalView as AskView } from './approval';
export { disposeCard, renderCard, updateTail } from './card';
export * from './types';
