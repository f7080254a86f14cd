/** Names of files that belong to a result. */

import { el } from '../dom';
import { visibleLine } from '../format';
import { markPath } from '../pathLinks';

/** Draws the names into `host`, replacing what is there. */
export function drawFiles(host: HTMLElement, files: string[]): void {
  const list = el('ul', 'oc-names');
  for (const name of files) {
    const item = el('li');
    const code = el('code', '', visibleLine(name));
    markPath(code, name);
    item.append(code);
    list.append(item);
  }
  host.replaceChildren(list);
}
