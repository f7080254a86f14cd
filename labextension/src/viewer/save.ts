/** The whole file for a person to take along: as a download or on the clipboard. */

import { size } from '../card/format';
import { trans } from '../i18n';
import type { Source } from './source';

/** Largest file that is fetched from the kernel for a download: it is held in the page's memory. */
export const DOWNLOAD_BYTES = 256 * 1024 * 1024;
/** Largest file that is copied. */
export const COPY_BYTES = 5 * 1024 * 1024;

/** Fetches the whole file in parts. `progress` is told the share that is there; false from it ends it. */
export async function fetchWhole(source: Source, most: number, progress: (share: number) => boolean): Promise<Blob | undefined> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let at = 0;
  for (;;) {
    const { data, end, bytes } = await source.part(at);
    if (bytes > most) {
      throw new Error(
        trans.__('It has %1, more than the %2 that can be fetched through the kernel. The file is on the kernel’s machine: %3', size(bytes), size(most), source.path)
      );
    }
    parts.push(data as Uint8Array<ArrayBuffer>);
    if (end <= at || end >= bytes) {
      return new Blob(parts, { type: 'text/plain' });
    }
    at = end;
    if (!progress(at / bytes)) {
      return undefined;
    }
  }
}

/** Whether the server hands out `url`. */
export async function isServed(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { method: 'HEAD' })).ok;
  } catch {
    return false;
  }
}

/** Has the browser save what is at `url` as `name`. */
export function save(url: string, name: string): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}
