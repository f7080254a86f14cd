/** The contract of a run's card: see `card/token.ts`. */

import type { RunItem, RunUpdate, WordsItem } from '../card/contract';

export type { CallItem, RunHead, RunItem, RunPart, RunUpdate, RunWhole, WordsItem } from '../card/contract';

/** The MIME type of a saved run; its version is the `v` of `RunPart`. */
export const RUN_MIME = 'application/vnd.opencode.run.v1+json';

/** What an update makes of a run: its new items, the places of those that changed, and whether nothing before it is missing. */
export function withUpdate(before: readonly RunItem[], { items: changed = [], deltas = [] }: RunUpdate): { items: RunItem[]; places: Set<number>; complete: boolean } {
  const items = [...before];
  const places = new Set<number>();
  let complete = true;
  for (const [at, item] of changed) {
    if (at > items.length) {
      complete = false;
    } else {
      items[at] = item;
      places.add(at);
    }
  }
  for (const [at, length, text] of deltas) {
    const item = items[at] as WordsItem | undefined;
    if (item?.text === undefined || item.text.length < length) {
      complete = false;
    } else if (item.text.length === length) {
      items[at] = { ...item, text: item.text + text };
      places.add(at);
    } // else it is in what came before
  }
  return { items, places, complete };
}
