/** What the plugin offers the cards in its page, live ones and saved ones. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ILatexTypesetter, IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { canRunAgain, cellAround, insertBelow } from '../notebook/insertCell';
import { answerKeys } from '../panel/approvals/commands';
import type { SpillLink } from '../card/types';
import type { KernelHub } from './hub';
import { documentOf, kernelOf, requestKernel } from './requests';
import type { ControlBridge } from './messages';
import { openSpill } from '../viewer';

/** The bridge that cards look for. */
export function createBridge(
  app: JupyterFrontEnd,
  hub: KernelHub,
  typesetter: ILatexTypesetter | null,
  rendermime: IRenderMimeRegistry | null
): ControlBridge {
  const { shell } = app;
  return {
    send: (kernelId, commId, message) => hub.send(kernelId, commId, message),
    liveModel(card, modelId) {
      const kernel = kernelOf(documentOf(shell, card, ''));
      return kernel ? hub.comms.model(modelId, kernel.id) : undefined;
    },
    revise: (kernelId, ask, input) => hub.revise(kernelId, ask, input),
    open(card: Element, kernelId: string, spill: SpillLink): void {
      const document = documentOf(shell, card, kernelId);
      openSpill(app, spill, request => requestKernel(kernelOf(document), request));
    },
    openFile(card: Element, kernelId: string, path: string, line?: number): void {
      const document = documentOf(shell, card, kernelId);
      const own = (document as { context?: { localPath?: string } } | undefined)?.context?.localPath ?? '';
      const folder = own.split('/').slice(0, -1).join('/');
      // loaded when it is wanted: most pages never open a file
      void import('../viewer/openFile').then(({ openFile }) => openFile(app, kernelOf(document), folder, path, line));
    },
    explain: code => void import('../viewer/errorHelp').then(({ explainError }) => explainError(code, rendermime)),
    keys: () => answerKeys(app),
    typeset: typesetter ? formula => void typesetter.typeset(formula) : undefined,
    canInsert: card => cellAround(app, card) !== undefined,
    insertCell: (card, source) => insertBelow(app, card, source, false),
    canRun: card => canRunAgain(app, card),
    runAgain: (card, source) => insertBelow(app, card, source, true)
  };
}
