/** The changes of several files, each with its name and how much changed. */

import { trans } from '../i18n';
import { textBox } from '../copy';
import { firstChangedLine } from '../diff';
import { drawDiff } from '../diffview';
import { el, setRole } from '../dom';
import { visibleLine } from '../format';
import { markPath } from '../pathLinks';
import type { CardDiff } from '../types';

function kindWord(type: string): string {
  switch (type) {
    case 'add':
      return trans.__('new');
    case 'delete':
      return trans.__('deleted');
    case 'move':
      return trans.__('moved');
    case 'update':
      return '';
    default:
      return visibleLine(type);
  }
}

/** Draws `diffs` into `host`, replacing what is there. */
export function drawDiffs(host: HTMLElement, diffs: CardDiff[]): void {
  host.replaceChildren(
    ...diffs.map(({ path, type, diff, from, additions, deletions }) => {
      const file = el('div', 'oc-filediff');
      const block = el('details');
      block.open = true;
      const head = el('summary');
      head.append(el('code', '', visibleLine(path)));
      const words = from ? trans.__('moved from %1', visibleLine(from)) : kindWord(type);
      if (words) {
        head.append(' ', el('span', 'oc-why', words));
      }
      head.append(' ');
      if (additions) {
        head.append(counted('oc-plus', `+${additions}`, trans._n('%1 line added', '%1 lines added', additions)), ' ');
      }
      if (deletions) {
        head.append(counted('oc-minus', `−${deletions}`, trans._n('%1 line removed', '%1 lines removed', deletions)));
      }
      block.append(head);
      if (diff.trim()) {
        const name = visibleLine(path);
        const box = textBox('oc-diff', trans.__('Change of %1', name), trans.__('Copy change of %1', name), () => diff);
        block.append(box.node);
        drawDiff(box.inner, diff);
        box.ready();
      }
      file.append(block);
      if (type !== 'delete') {
        // beside the heading: a button inside of what folds is no button to a screen reader
        const link = el('span', 'oc-fileopen', trans.__('open'));
        markPath(link, path, firstChangedLine(diff));
        file.append(link);
      }
      return file;
    })
  );
}

/** A short number with its meaning in words. */
function counted(className: string, short: string, words: string): HTMLElement {
  const node = el('span', className, short);
  setRole(node, 'img', words);
  return node;
}
