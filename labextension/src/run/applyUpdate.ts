/** What an update of a run makes of its items. */

import type { RunItem, RunUpdate, WordsItem } from './types';

/** The new items, the places of those that changed, and whether nothing before them is missing. */
export function applyUpdate(before: readonly RunItem[], { items: changed = [], deltas = [] }: RunUpdate): { items: RunItem[]; changedIndexes: Set<number>; complete: boolean } {
  const items = [...before];
  const changedIndexes = new Set<number>();
  let complete = true;
  for (const [index, item] of changed) {
    if (index > items.length) {
      complete = false;
    } else {
      items[index] = item;
      changedIndexes.add(index);
    }
  }
  for (const [index, length, text] of deltas) {
    const item = items[index] as WordsItem | undefined;
    if (item?.text === undefined || item.text.length < length) {
      complete = false;
    } else if (item.text.length === length) {
      items[index] = { ...item, text: item.text + text };
      changedIndexes.add(index);
    } // else it is in what came before
  }
  return { items, changedIndexes, complete };
}
