/** Notifications of asks that nobody can see: the card is out of sight, in another tab of JupyterLab, or the page is hidden. */

import { Notification } from '@jupyterlab/apputils';

import { trans } from '../../card/i18n';
import { preferences } from '../../card/preferences';
import type { ApprovalModel, Entry } from './approvalModel';
import { words } from './wording';

/** How long a new ask may take to be drawn before it counts as out of sight. */
const DRAWN_MS = 700;
/** Clicks are not taken this long after a notification has appeared. */
const GUARD_MS = 600;

/** How often it is looked whether what was notified is seen by now, as in a panel that was opened since. */
const LOOK_MS = 500;

/** What can be done from a notification. */
export interface NotifyActions {
  visible(entry: Entry): boolean;
  show(entry: Entry): void;
  allow(entries: readonly Entry[]): void;
  reject(entries: readonly Entry[]): void;
}

/** Notifies of what `model` gets; takes each back when it is answered or seen. */
export function notify(model: ApprovalModel, actions: NotifyActions): void {
  const shown = new Map<string, string>();
  let looking: ReturnType<typeof setInterval> | undefined;
  const takeBack = (over: (id: string) => boolean): void => {
    for (const [id, notification] of shown) {
      if (over(id)) {
        Notification.dismiss(notification);
        shown.delete(id);
      }
    }
    if (!shown.size) {
      clearInterval(looking);
      looking = undefined;
    }
  };
  const seen = (id: string): boolean => model.entries().some(entry => entry.id === id && actions.visible(entry));
  const notifyOf = (id: string): void => {
    const entry = model.entries().find(other => other.id === id);
    if (!entry || shown.has(id) || !preferences().notify || actions.visible(entry)) {
      return;
    }
    const { text, whole } = words(entry);
    const at = Date.now();
    // an answer needs all that is asked in view; else the notification only leads there
    const taken = (act: () => void) => (event: MouseEvent) => {
      if (Date.now() - at < GUARD_MS) {
        event.preventDefault();
      } else {
        act();
      }
    };
    const buttons: Notification.IAction[] = [{ label: trans.__('Show'), callback: () => actions.show(entry) }];
    if (whole) {
      buttons.unshift({ label: trans.__('Allow once'), displayType: 'accent', callback: taken(() => actions.allow([entry])) });
    }
    if (entry.card?.ui.ask) {
      buttons.push({ label: trans.__('Deny'), displayType: 'warn', callback: taken(() => actions.reject([entry])) });
    }
    shown.set(id, Notification.warning(text, { autoClose: false, actions: buttons }));
    looking ??= setInterval(() => takeBack(seen), LOOK_MS);
  };
  model.changed.connect((_, fresh) => {
    const waiting = new Set(model.entries().map(({ id }) => id));
    takeBack(id => !waiting.has(id));
    for (const { id } of fresh) {
      setTimeout(() => notifyOf(id), DRAWN_MS);
    }
  });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      model.entries().forEach(({ id }) => notifyOf(id));
    }
  });
}
