/** Files and pictures that came with a result. */

import { trans } from '../i18n';
import { button, el, safePicture } from '../dom';
import { visibleLine } from '../format';
import type { CardAttachment } from '../types';

/** Draws `attachments` into `host`, replacing what is there: pictures inline, others by name. */
export function drawPictures(host: HTMLElement, attachments: CardAttachment[]): void {
  host.replaceChildren(
    ...attachments.map(({ mime, url, filename }) => {
      const name = visibleLine(filename ?? mime);
      if (!safePicture(url)) {
        return el('div', 'oc-why', filename ? `${name} (${visibleLine(mime)})` : name);
      }
      const larger = el('button', 'oc-picture');
      larger.type = 'button';
      larger.title = trans.__('Enlarge');
      larger.append(picture(url, name));
      larger.addEventListener('click', () => enlarge(host, url, name));
      return larger;
    })
  );
}

function picture(url: string, name: string): HTMLImageElement {
  const made = el('img');
  made.src = url;
  made.alt = name;
  made.decoding = 'async';
  return made;
}

/** The picture over the whole page; Escape, Close or a click anywhere ends it, and the focus goes back. */
function enlarge(host: HTMLElement, url: string, name: string): void {
  const dialog = el('dialog', 'oc-enlarged');
  dialog.setAttribute('aria-label', name);
  // Jupyter's own keys stay away
  dialog.setAttribute('data-lm-suppress-shortcuts', '');
  const close = button(trans.__('Close'), '', 'oc-button', () => dialog.close());
  dialog.append(picture(url, name), close);
  dialog.addEventListener('click', () => dialog.close());
  dialog.addEventListener('keydown', event => event.stopPropagation());
  dialog.addEventListener('close', () => dialog.remove());
  host.append(dialog);
  dialog.showModal();
}
