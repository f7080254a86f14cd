/**
 * The state of live cards, read off the kernel's messages without a widget manager. JupyterLab draws widgets only in
 * cells it trusts, and where a server runs the cells (jupyter-server-documents) running one does not make it trusted.
 * There our own renderer, which writes text nodes only, draws the live card from this state.
 */

import { Signal } from '@lumino/signaling';

import type { CardPart } from '../card/types';
import type { Model } from './liveWidget';
import { applyUpdate } from '../run/applyUpdate';
import type { RunPart, RunUpdate, RunWhole } from '../run/types';

/** The target of the comms of widgets. */
export const COMM_TARGET = 'jupyter.widget';

/** What is needed of a message on IOPub. */
export interface IOPubMessage {
  header: { msg_type: string };
  content: { comm_id?: string; target_name?: string; data?: { method?: string; state?: Traits; content?: unknown } };
}

type Traits = Record<string, unknown>;
type Listener = (...args: never[]) => void;

/** One live card's widget, as far as its messages tell. What it sends goes by the control channel alone. */
class CommModel implements Model {
  private readonly traits: Traits;
  private readonly listeners = new Map<string, Set<Listener>>();

  constructor(
    readonly model_id: string,
    kernelId: string
  ) {
    this.traits = { kernel_id: kernelId, comm_id: model_id };
  }

  get(name: string): never {
    return this.traits[name] as never;
  }

  on(event: string, listener: Listener): void {
    this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(listener));
  }

  off(event: string, listener: Listener): void {
    this.listeners.get(event)?.delete(listener);
  }

  send(): void {
    // the bridge has sent it by the control channel
  }

  update(state: Traits): void {
    Object.assign(this.traits, state);
    Object.keys(state).forEach(name => this.emit(`change:${name}`));
  }

  emit(event: string, ...args: unknown[]): void {
    [...(this.listeners.get(event) ?? [])].forEach(listener => (listener as (...args: unknown[]) => void)(...args));
  }
}

/** The live cards of every kernel that this page is connected to. */
export class LiveComms {
  /** Emitted with the model's id when the kernel closes it: the call is over. */
  readonly closed = new Signal<LiveComms, string>(this);
  private readonly models = new Map<string, CommModel>();

  /** The model `id`; without state until the kernel sends some. */
  model(id: string, kernelId: string): CommModel {
    const model = this.models.get(id) ?? new CommModel(id, kernelId);
    this.models.set(id, model);
    return model;
  }

  /** Takes in a message that the kernel published. */
  receive(kernelId: string, { header, content }: IOPubMessage): void {
    const { comm_id: id = '', data = {} } = content;
    const { state = {} } = data;
    const known = this.models.get(id);
    const opened = header.msg_type === 'comm_open' && content.target_name === COMM_TARGET;
    const updated = header.msg_type === 'comm_msg' && data.method === 'update';
    // a page that was reloaded during the call sees no opening: the kernel sends it the whole part
    if ((opened && ('part' in state || 'run' in state)) || (updated && (state.part as Partial<CardPart> | undefined)?.callID)) {
      this.model(id, kernelId).update(state);
    } else if (updated) {
      known?.update(state);
    } else if (header.msg_type === 'comm_msg' && data.method === 'custom') {
      const update = data.content as RunWhole | RunUpdate;
      const run = known?.get('run') as RunPart | undefined;
      if (update.kind === 'whole') {
        known?.update({ run: update.run }); // for a page that was opened late
      } else if (update.kind === 'run' && run) {
        known?.update({ run: { ...run, ...update.head, items: applyUpdate(run.items, update).items } });
      }
      known?.emit('msg:custom', data.content);
    } else if (header.msg_type === 'comm_close' && known) {
      this.models.delete(id);
      known.emit('close');
      this.closed.emit(id);
    }
  }

  /** The call or run that the model `id` showed last; kept when its kernel ends before it does. */
  shown(id: string): CardPart | RunPart | undefined {
    const model = this.models.get(id);
    return model?.get('part') ?? model?.get('run');
  }
}
