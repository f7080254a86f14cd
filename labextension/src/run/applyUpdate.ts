/** What an update of a run makes of its items. */

import type { RunItem, RunUpdate, WordsItem } from './types';

/** The new items, the places of those that changed, and whether nothing before them is missing. */
export function applyUpdate(before: readonly RunItem[], { items: changed = [], deltas = [] }: RunUpdate): { items: RunItem[]; places: Set<number>; complete: boolean } {
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
