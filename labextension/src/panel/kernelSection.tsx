/** A section about one notebook's kernel: the one in front at first, then the one that the person chooses. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { errorMessage } from '../card/format';
import { trans } from '../card/i18n';
import type { OpenKernel, PanelRequest, Topic } from '../kernel/hub';
import { Select, Status } from './formControls';
import { Section } from './section';
import type { PanelContext } from './section';

/** Draws what the kernel replied last, below the choice of the notebook where there are several. */
export abstract class KernelSection<Reply> extends Section {
  /** The kernel whose reply is shown. */
  protected kernel: OpenKernel | undefined;
  protected reply: Reply | undefined;
  /** Why there is nothing to see. */
  protected message = '';
  private chosen = '';

  constructor(
    protected readonly context: PanelContext,
    name: string,
    label: string,
    topics: readonly Topic[]
  ) {
    super(name, label, topics);
  }

  /** What is requested of the kernel. */
  protected abstract request(): PanelRequest;
  /** The reply, drawn. */
  protected abstract renderReply(reply: Reply): ReactElement;

  /** Takes in a reply. */
  protected receive(reply: Reply): void {
    this.reply = reply;
  }

  /** Forgets what belongs to the kernel that was shown before. */
  protected reset(): void {
    this.reply = undefined;
  }

  async refresh(): Promise<boolean> {
    const { hub } = this.context;
    const kernels = hub.kernels();
    const kernel = kernels.find(({ id }) => id === this.chosen) ?? hub.current() ?? kernels[0];
    if (kernel?.id !== this.kernel?.id) {
      this.reset();
    }
    this.kernel = kernel;
    if (!kernel) {
      this.message = trans.__('No open notebook has the tools loaded. Run %1 in one.', '%load_ext opencode_jupyter');
      this.update();
      return true;
    }
    try {
      const reply = await hub.request<Reply>(kernel.id, this.request());
      if (kernel.id === this.kernel?.id) {
        this.message = '';
        this.receive(reply);
      }
      return true;
    } catch (error) {
      this.message = errorMessage(error);
      return false;
    } finally {
      this.update();
    }
  }

  protected render(): ReactElement {
    const { hub } = this.context;
    const front = hub.current();
    const kernels = hub.kernels();
    const inOrder = front ? [front, ...kernels.filter(({ id }) => id !== front.id)] : kernels;
    const choose = (id: string): void => {
      this.chosen = id;
      void this.refresh();
    };
    return (
      <>
        {kernels.length > 1 && (
          <div className="oc-panel-choose">
            <Select label={trans.__('Notebook')} hideLabel value={this.kernel?.id ?? ''} choices={inOrder.map(({ id, name }) => [id, name])} onChange={choose} />
          </div>
        )}
        <Status className="oc-panel-empty">{this.message}</Status>
        {this.reply !== undefined && this.renderReply(this.reply)}
      </>
    );
  }
}
