/** The contract of a run's card: see `card/types.ts`. */

export type { CallItem, RunHead, RunItem, RunPart, RunUpdate, RunWhole, WordsItem } from '../card/contract';

/** The MIME type of a saved run; its version is the `v` of `RunPart`. */
export const RUN_MIME = 'application/vnd.opencode.run.v1+json';
