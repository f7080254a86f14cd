/** Notifications of approvals that nobody can see: the card is out of sight, in another tab of JupyterLab, or the page is hidden. */

import { Notification } from '@jupyterlab/apputils';

import { trans } from '../../card/i18n';
import { preferences } from '../../card/preferences';
import type { Approval, ApprovalModel } from './approvalModel';
import { notificationText } from './notificationText';

/** How long a new approval may take to be drawn before it counts as out of sight. */
const DRAWN_MS = 700;
/** Clicks are not taken this long after a notification has appeared. */
const GUARD_MS = 600;

/** How often to check whether what was notified is seen by now, as in a panel that was opened since. */
const CHECK_MS = 500;

/** What can be done from a notification. */
export interface NotifyActions {
  isVisible(approval: Approval): boolean;
  show(approval: Approval): void;
  allow(approvals: readonly Approval[]): void;
  deny(approvals: readonly Approval[]): void;
}

/** Notifies of what `model` receives; dismisses each when it is answered or seen. */
export function notifyApprovals(model: ApprovalModel, actions: NotifyActions): void {
  const shown = new Map<string, string>();
  let timer: ReturnType<typeof setInterval> | undefined;
  const dismiss = (over: (id: string) => boolean): void => {
    for (const [id, notification] of shown) {
      if (over(id)) {
        Notification.dismiss(notification);
        shown.delete(id);
      }
    }
    if (!shown.size) {
      clearInterval(timer);
      timer = undefined;
    }
  };
  const isSeen = (id: string): boolean => model.approvals().some(approval => approval.id === id && actions.isVisible(approval));
  const notifyAbout = (id: string): void => {
    const approval = model.approvals().find(other => other.id === id);
    if (!approval || shown.has(id) || !preferences().notify || actions.isVisible(approval)) {
      return;
    }
    const { text, whole } = notificationText(approval);
    const at = Date.now();
    // an answer needs all that is asked in view; else the notification only leads there
    const guarded = (act: () => void) => (event: MouseEvent) => {
      if (Date.now() - at < GUARD_MS) {
        event.preventDefault();
      } else {
        act();
      }
    };
    const buttons: Notification.IAction[] = [{ label: trans.__('Show'), callback: () => actions.show(approval) }];
    if (whole) {
      buttons.unshift({ label: trans.__('Allow once'), displayType: 'accent', callback: guarded(() => actions.allow([approval])) });
    }
    if (approval.card?.ui.ask) {
      buttons.push({ label: trans.__('Deny'), displayType: 'warn', callback: guarded(() => actions.deny([approval])) });
    }
    shown.set(id, Notification.warning(text, { autoClose: false, actions: buttons }));
    timer ??= setInterval(() => dismiss(isSeen), CHECK_MS);
  };
  model.changed.connect((_, fresh) => {
    const waiting = new Set(model.approvals().map(({ id }) => id));
    dismiss(id => !waiting.has(id));
    for (const { id } of fresh) {
      setTimeout(() => notifyAbout(id), DRAWN_MS);
    }
  });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      model.approvals().forEach(({ id }) => notifyAbout(id));
    }
  });
}
