/** Files and pictures that came with a result. */

import { el, safePicture } from '../dom';
import { visibleLine } from '../format';
import type { CardAttachment } from '../token';

/** Draws `attachments` into `host`, replacing what is there: pictures inline, others by name. */
export function drawPictures(host: HTMLElement, attachments: CardAttachment[]): void {
  host.replaceChildren(
    ...attachments.map(({ mime, url, filename }) => {
      const name = visibleLine(filename ?? mime);
      if (!safePicture(url)) {
        return el('div', 'oc-why', filename ? `${name} (${visibleLine(mime)})` : name);
      }
      const picture = el('img');
      picture.src = url;
      picture.alt = name;
      return picture;
    })
  );
}
