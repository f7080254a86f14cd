/** What the documentation says of an error's code, in a dialog. */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import { MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { Widget } from '@lumino/widgets';

import page from '../../../docs/errors.md';
import { trans } from '../card/i18n';

/**
 * The section of an error's code in the documentation's page, as Markdown without links, which lead to other pages.
 *
 * @param code - `OJ-permission-denied`; empty text if the page has no section of that name.
 */
export function sectionOf(markdown: string, code: string): string {
  const section = markdown.split(/^#{2,3} /m).find(text => text.startsWith(`${code}\n`)) ?? '';
  return section.slice(code.length).replace(/\[([^\]]+)\]\([^)]+\)/g, '$1').trim();
}

/** Shows the section of `code`; without JupyterLab's renderers its plain text. */
export async function explainError(code: string, rendermime: IRenderMimeRegistry | null): Promise<void> {
  const text = sectionOf(page, code) || trans.__('The documentation does not know this code.');
  let body = new Widget();
  if (rendermime) {
    const renderer = rendermime.createRenderer('text/markdown');
    await renderer.renderModel(new MimeModel({ data: { 'text/markdown': text } }));
    body = renderer;
  } else {
    body.node.textContent = text;
  }
  await showDialog({ title: code, body, buttons: [Dialog.okButton({ label: trans.__('Close') })] });
}
