/** The commands of approvals and of running calls: in the palette, with shortcuts that JupyterLab's settings can change. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';

import { trans } from '../../card/i18n';
import type { KernelHub } from '../../kernel/hub';
import { nextAfter } from './approvalModel';
import type { Approval, ApprovalModel } from './approvalModel';
import { focusedCard, handleCardKeyboard } from './cardKeyboard';

/** What the commands are called; `schema/panel.json` gives them their keys. */
export const COMMANDS = {
  next: 'opencode-jupyter:next-ask',
  once: 'opencode-jupyter:allow-once',
  session: 'opencode-jupyter:allow-session',
  deny: 'opencode-jupyter:deny',
  stop: 'opencode-jupyter:stop-call'
} as const;

/** The shortcuts of the commands that answer, as they are now, as a person reads them. */
export function answerKeys({ commands }: Pick<JupyterFrontEnd, 'commands'>): { once?: string; session?: string; deny?: string } {
  const keyOf = (id: string): string | undefined => {
    const binding = commands.keyBindings.find(({ command }) => command === id);
    return binding && CommandRegistry.formatKeystroke(binding.keys);
  };
  return { once: keyOf(COMMANDS.once), session: keyOf(COMMANDS.session), deny: keyOf(COMMANDS.deny) };
}

/** What the commands do with an approval. */
export interface CommandActions {
  show(approval: Approval): void;
  /** Its card where a person sees it now. */
  visibleCard(approval: Approval): HTMLElement | null;
}

/** Adds them; gives what goes to the next approval. */
export function addCommands(
  app: JupyterFrontEnd,
  model: ApprovalModel,
  hub: KernelHub,
  actions: CommandActions,
  palette: ICommandPalette | null
): () => void {
  /** The approval that "next" has led to last. */
  let last = '';
  const next = (): void => {
    const approval = nextAfter(model.approvals(), last);
    if (approval) {
      last = approval.id;
      actions.show(approval);
    }
  };
  /**
   * Presses a key on the card in focus, so that its guard and its second step hold here too; else on the only request
   * in sight. With none or several in sight it leads to the next: nothing is answered that nobody looks at.
   */
  const press = (key: string): void => {
    const requests = model.approvals().filter(({ card }) => card?.ui.ask);
    const focused = focusedCard();
    const visible = requests.flatMap(request => actions.visibleCard(request) ?? []);
    const own = focused && requests.some(({ callID }) => callID === focused.dataset.call);
    const card = own ? focused : visible.length === 1 ? visible[0] : undefined;
    if (card) {
      if (!own && key === '2') {
        card.focus({ preventScroll: true }); // the patterns are typed there
      }
      card.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    } else {
      next();
    }
  };
  const stop = (): void => {
    const call = focusedCard()?.dataset.call ?? '';
    for (const { id } of hub.kernels()) {
      if (call) {
        hub.send(id, '', { kind: 'stop', callID: call });
      }
    }
    const current = hub.current();
    if (!call && current) {
      void hub.request(current.id, { what: 'stop' }).catch(error => console.warn('opencode-jupyter:', error));
    }
  };
  const isPending = (): boolean => model.approvals().length > 0;
  const add = (id: string, label: string, caption: string, execute: () => void, isEnabled?: () => boolean): void => {
    app.commands.addCommand(id, { label, caption, execute, isEnabled });
    palette?.addItem({ command: id, category: trans.__('OpenCode tools') });
  };
  add(COMMANDS.next, trans.__('Go to the next approval'), trans.__('Shows the request that has waited longest, then the next one'), next, isPending);
  const focused = trans.__('Replies to the focused request, or to the only visible one; otherwise goes to the next one');
  add(COMMANDS.once, trans.__('Allow once'), focused, () => press('1'), isPending);
  add(COMMANDS.session, trans.__('Allow for this session'), focused, () => press('2'), isPending);
  add(COMMANDS.deny, trans.__('Deny'), focused, () => press('3'), isPending);
  add(
    COMMANDS.stop,
    trans.__('Stop the tool call'),
    trans.__('Stops the focused call, or the calls that run in the current notebook'),
    stop,
    () => hub.kernels().length > 0
  );
  handleCardKeyboard();
  model.changed.connect(() => {
    Object.values(COMMANDS).forEach(id => app.commands.notifyCommandChanged(id));
  });
  return next;
}
