/** The card, framework-free: what the live widget and the JupyterLab renderer are both made of. */

export { ApprovalView as AskView } from './approvalView';
export { disposeCard, renderCard, updateTail } from './cardView';
export * from './types';
