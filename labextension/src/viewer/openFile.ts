/** Opens files of the kernel's machine in the ordinary editor, where the server shows them. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';

import { visibleLine } from '../card/format';
import { trans } from '../card/i18n';
import { requestKernel } from '../kernel/requests';
import { candidates } from './serverPaths';

/** What is needed of a document's widget. */
interface Opened {
  context?: { ready: Promise<unknown> };
  revealed?: Promise<unknown>;
  setFragment?(fragment: string): void;
}

/** Where the kernel says that the server shows `path`; nothing if it does not; undefined if no kernel can tell. */
async function locate(kernel: Kernel.IKernelConnection | null, path: string): Promise<string | null | undefined> {
  try {
    const reply = kernel && ((await requestKernel(kernel, { kind: 'served', path })) as { path?: string | null });
    return reply?.path;
  } catch {
    return undefined;
  }
}

/** Opens `path` at `line` (from 1); tells the person where that can't be done. */
export async function openFile(
  app: JupyterFrontEnd,
  kernel: Kernel.IKernelConnection | null,
  folder: string,
  path: string,
  line?: number
): Promise<void> {
  const root = (app as { paths?: Partial<JupyterFrontEnd.IPaths> }).paths?.directories?.serverRoot ?? '';
  const served = await locate(kernel, path);
  const serverPaths = served ? [served] : candidates(path, root, folder);
  for (const serverPath of serverPaths) {
    try {
      await app.serviceManager.contents.get(serverPath, { content: false });
    } catch {
      continue;
    }
    // a table or a rendered page has no lines
    const factory = line && !serverPath.endsWith('.ipynb') ? 'Editor' : undefined;
    const opened = (await app.commands.execute('docmanager:open', { path: serverPath, factory })) as Opened | undefined;
    if (factory && opened?.setFragment) {
      await opened.context?.ready;
      await opened.revealed;
      opened.setFragment(`#line=${(line as number) - 1}`);
    }
    return;
  }
  Notification.warning(trans.__('The server cannot open %1: it was removed, is hidden, or is outside the server’s root folder.', visibleLine(path)), {
    autoClose: 8000,
    actions: [{ label: trans.__('Copy path'), callback: () => void navigator.clipboard?.writeText(path) }]
  });
}
