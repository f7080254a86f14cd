/** Approvals are never missed: a tab of the side panel, a count in the status bar, notifications, commands with keys. */

import type { ICommandPalette } from '@jupyterlab/apputils';
import type { IStatusBar } from '@jupyterlab/statusbar';

import type { CardCallbacks, Reply } from '../../card';
import { replyCallbacks } from '../../kernel/messages';
import type { PanelContext } from '../section';
import { ApprovalModel } from './approvalModel';
import type { Approval } from './approvalModel';
import { findCard, goToCard, isInSight } from './cardLocation';
import { addCommands, answerKeys } from './commands';
import { notifyApprovals } from './notifications';
import { ApprovalsSection } from './section';
import { createStatusItem } from './statusItem';

/** Makes the section, and all that reports approvals while it is not seen. */
export function createApprovals({ app, hub, reveal }: PanelContext, palette: ICommandPalette | null, statusBar: IStatusBar | null): ApprovalsSection {
  const model = new ApprovalModel(hub);
  const documentOf = ({ kernelId }: Approval) => hub.kernels().find(({ id }) => id === kernelId)?.document;
  const callbacks = ({ kernelId, commID }: Approval): CardCallbacks => ({
    ...replyCallbacks(message => hub.send(kernelId, commID, message)),
    revise: (ask, input) => hub.revise(kernelId, ask, input),
    keys: () => answerKeys(app)
  });
  const reply = (approval: Approval, answer: Reply): void => {
    const { ask, question } = approval.card?.ui ?? {};
    if (ask) {
      callbacks(approval).reply?.(ask, answer, {});
    } else if (question && answer === 'reject') {
      callbacks(approval).dismiss?.(question);
    }
  };
  const show = async (approval: Approval): Promise<void> => {
    const document = documentOf(approval);
    const card = document && (await goToCard(app, document, approval.callID, approval.key));
    if (!card) {
      reveal(section.name); // its card is gone, and it waits all the same
    }
  };
  const actions = {
    callbacks,
    show: (approval: Approval) => void show(approval),
    allow: (approvals: readonly Approval[]) => approvals.forEach(approval => reply(approval, 'once')),
    deny: (approvals: readonly Approval[]) => approvals.forEach(approval => reply(approval, 'reject')),
    visibleCard: (approval: Approval): HTMLElement | null => {
      const roots = [documentOf(approval)?.node, section.node];
      const cards = roots.flatMap(root => (root && findCard(root, approval.callID)) ?? []);
      return cards.find(isInSight) ?? null;
    },
    isVisible: (approval: Approval): boolean => {
      // the panel lists every approval; notifications would lie over its buttons
      if (!document.hidden && section.isVisible) {
        return true;
      }
      const root = documentOf(approval)?.node;
      const card = root && (findCard(root, approval.callID) ?? findCard(root, approval.key));
      return !!card && isInSight(card);
    }
  };
  const section = new ApprovalsSection(model, actions, () => hub.kernels().length);
  const next = addCommands(app, model, hub, actions, palette);
  statusBar?.registerStatusItem('opencode-jupyter:asks', createStatusItem(model, next));
  notifyApprovals(model, actions);
  return section;
}
