/** The changes of several files, each with its name and how much changed. */

import { drawDiff, firstChange } from '../diff';
import { el } from '../dom';
import { visibleLine } from '../format';
import { markPath } from '../links';
import type { CardDiff } from '../token';

const WORDS: Record<string, string> = { add: 'new', delete: 'deleted', move: 'moved', update: '' };

/** Draws `diffs` into `host`, replacing what is there. */
export function drawDiffs(host: HTMLElement, diffs: CardDiff[]): void {
  host.replaceChildren(
    ...diffs.map(({ path, type, diff, from, additions, deletions }) => {
      const block = el('details', 'oc-filediff');
      block.open = true;
      const head = el('summary');
      const name = el('code', '', visibleLine(path));
      if (type !== 'delete') {
        markPath(name, path, firstChange(diff));
      }
      head.append(name);
      const words = from ? `moved from ${visibleLine(from)}` : (WORDS[type] ?? visibleLine(type));
      if (words) {
        head.append(' ', el('span', 'oc-why', words));
      }
      head.append(' ');
      if (additions) {
        head.append(el('span', 'oc-plus', `+${additions}`), ' ');
      }
      if (deletions) {
        head.append(el('span', 'oc-minus', `−${deletions}`));
      }
      block.append(head);
      if (diff.trim()) {
        const pre = el('pre', 'oc-pre oc-diff');
        pre.tabIndex = 0;
        pre.setAttribute('aria-label', `Change of ${visibleLine(path)}`);
        drawDiff(pre, diff);
        block.append(pre);
      }
      return block;
    })
  );
}
