/** A run's card, framework-free: what the live widget and the JupyterLab renderer are both made of. */

export { disposeRun, renderRun, updateRun } from './runView';
export * from './types';
