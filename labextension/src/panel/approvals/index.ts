/** Asks are never missed: a tab of the side panel, a count in the status bar, notifications, commands with keys. */

import type { ICommandPalette } from '@jupyterlab/apputils';
import type { IStatusBar } from '@jupyterlab/statusbar';

import type { CardCallbacks, Reply } from '../../card';
import { answering } from '../../kernel/messages';
import type { Surroundings, Section } from '../section';
import { ApprovalModel } from './approvalModel';
import type { Entry } from './approvalModel';
import { addCommands, answerKeys } from './commands';
import { cardIn, goTo, inSight } from './cardLocation';
import { notify } from './notify';
import { approvalsSection } from './section';
import { ApprovalStatus } from './status';

/** What else of JupyterLab is there. */
export interface Bars {
  palette: ICommandPalette | null;
  statusBar: IStatusBar | null;
}

/** Makes the section, and all that hears of asks while it is not seen. */
export function makeApprovals({ app, hub, reveal }: Surroundings, { palette, statusBar }: Bars): Section {
  const model = new ApprovalModel(hub);
  const documentOf = (entry: Entry) => hub.kernels().find(({ id }) => id === entry.kernelId)?.document;
  const callbacks = (entry: Entry): CardCallbacks => ({
    ...answering(message => hub.send(entry.kernelId, entry.commID, message)),
    revise: (ask, input) => hub.revise(entry.kernelId, ask, input),
    keys: () => answerKeys(app)
  });
  const reply = (entry: Entry, answer: Reply): void => {
    const ask = entry.card?.ui.ask;
    if (ask) {
      callbacks(entry).reply?.(ask, answer, {});
    }
  };
  const show = async (entry: Entry): Promise<void> => {
    const document = documentOf(entry);
    const card = document && (await goTo(app, document, entry.callID, entry.key));
    if (!card) {
      reveal('asks'); // its card is not there any more, and it waits all the same
    }
  };
  const actions = {
    callbacks,
    show: (entry: Entry) => void show(entry),
    allow: (entries: readonly Entry[]) => entries.forEach(entry => reply(entry, 'once')),
    reject: (entries: readonly Entry[]) =>
      entries.forEach(entry => {
        const questions = entry.card?.ui.question;
        if (questions) {
          callbacks(entry).dismiss?.(questions);
        } else {
          reply(entry, 'reject');
        }
      }),
    seen: (entry: Entry): HTMLElement | null => {
      const places = [documentOf(entry)?.node, section.node];
      const cards = places.flatMap(place => (place && cardIn(place, entry.callID)) ?? []);
      return cards.find(inSight) ?? null;
    },
    visible: (entry: Entry): boolean => {
      // the panel lists every ask; notifications would lie over its buttons
      if (!document.hidden && section.node.getClientRects().length > 0) {
        return true;
      }
      const place = documentOf(entry)?.node;
      const card = place && (cardIn(place, entry.callID) ?? cardIn(place, entry.key));
      return !!card && inSight(card);
    }
  };
  const section = approvalsSection(model, actions, () => hub.kernels().length);
  const next = addCommands(app, model, hub, actions, palette);
  statusBar?.registerStatusItem('opencode-jupyter:asks', { item: new ApprovalStatus(model, next), align: 'left', rank: 900 });
  notify(model, actions);
  return { ...section, changed: model.changed };
}
