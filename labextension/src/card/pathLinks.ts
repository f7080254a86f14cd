/** Paths that open: what is drawn with `data-oc-path` becomes a link where somebody can open files. */

import { trans } from './i18n';
import { button } from './dom';
import { visibleLine } from './format';
import type { CardCallbacks, CardPart } from './types';

/** Marks `node`, whose text is a path, as the file at `path` (relative to the card's base), at `line` from 1. */
export function markPath(node: HTMLElement, path: string, line?: number): void {
  node.dataset.ocPath = path;
  if (line !== undefined && line > 0) {
    node.dataset.ocLine = String(line);
  } else {
    delete node.dataset.ocLine;
  }
}

/** `path` below `base`, unless it stands for itself. */
export function below(base: string | undefined, path: string): string {
  return !base || /^(?:\/|[A-Za-z]:[\\/])/.test(path) ? path : `${base.replace(/[\\/]+$/, '')}/${path}`;
}

/** What the names of a result's files are relative to; skills saved before `ui.base` existed have it in their metadata only. */
function baseOf({ state, ui }: CardPart): string | undefined {
  const folder = ui.files && state.metadata?.dir;
  return ui.base ?? (typeof folder === 'string' ? folder : undefined);
}

/** Makes links of the paths in `card` that are not links yet; those of cards inside it are their own affair. */
export function linkPaths(card: HTMLElement, part: CardPart, callbacks: CardCallbacks): void {
  const { openFile } = callbacks;
  if (!openFile) {
    return;
  }
  for (const node of card.querySelectorAll<HTMLElement>('[data-oc-path]')) {
    const text = node.textContent ?? '';
    if (!text || node.querySelector('button') || node.closest('.oc-card') !== card) {
      continue;
    }
    const name = visibleLine(node.dataset.ocPath ?? '');
    const { ocLine } = node.dataset;
    const label = ocLine ? trans.__('Open %1 at line %2', name, ocLine) : trans.__('Open %1', name);
    const link = button(label, '', 'oc-link oc-opens', () => {
      // as it is now: a card that is drawn anew keeps its nodes
      openFile(below(baseOf(part), node.dataset.ocPath ?? ''), Number(node.dataset.ocLine) || undefined);
    });
    link.textContent = text;
    link.title = label;
    node.replaceChildren(link);
  }
}
