/** The whole file for a person to take along: as a download or on the clipboard. */

import { setText } from '../card/dom';
import { errorMessage, size } from '../card/format';
import { trans } from '../card/i18n';
import type { Source } from './source';

/** Largest file that is fetched from the kernel for a download: it is held in the page's memory. */
export const DOWNLOAD_BYTES = 256 * 1024 * 1024;
/** Largest file that is copied. */
export const COPY_BYTES = 5 * 1024 * 1024;

/** Fetches the whole file in parts. `progress` is told the share that is there; false from it ends it. */
export async function fetchFile(source: Source, most: number, progress: (share: number) => boolean): Promise<Blob | undefined> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (;;) {
    const { data, end, bytes } = await source.part(offset);
    if (bytes > most) {
      throw new Error(
        trans.__('It has %1, more than the %2 that can be fetched through the kernel. The file is on the kernel’s machine: %3', size(bytes), size(most), source.path)
      );
    }
    parts.push(data as Uint8Array<ArrayBuffer>);
    if (end <= offset || end >= bytes) {
      return new Blob(parts, { type: 'text/plain' });
    }
    offset = end;
    if (!progress(offset / bytes)) {
      return undefined;
    }
  }
}

/** Has the browser save `blob` as a file. */
export function saveBlob(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The download of a viewer's file through the kernel, and its button. */
export class Download {
  private running = false;

  constructor(
    private readonly source: Source,
    private readonly button: HTMLButtonElement,
    private readonly report: (words: string) => void
  ) {}

  /** Begins it, or cancels the one that goes on. */
  async press(): Promise<void> {
    if (this.running) {
      this.cancel();
      return;
    }
    this.running = true;
    setText(this.button, trans.__('Cancel the download'));
    try {
      const whole = await fetchFile(this.source, DOWNLOAD_BYTES, share => {
        this.report(trans.__('fetched: %1 %', Math.floor(100 * share)));
        return this.running;
      });
      this.report(whole ? '' : trans.__('The download was cancelled.'));
      if (whole) {
        saveBlob(whole, `${this.source.path.split(/[\\/]/).pop() ?? 'output'}.txt`);
      }
    } catch (error) {
      this.report(errorMessage(error));
    } finally {
      this.running = false;
      setText(this.button, trans.__('Download'));
    }
  }

  /** Ends what goes on. */
  cancel(): void {
    this.running = false;
  }
}
