/** The status bar's word on asks: how many wait; a click goes to the next. */

import { Widget } from '@lumino/widgets';

import { button, setText } from '../../card/dom';
import { trans } from '../../card/i18n';
import type { ApprovalModel } from './approvalModel';

/** The item; hidden while nothing waits. */
export class ApprovalStatus extends Widget {
  private readonly button: HTMLButtonElement;

  constructor(
    private readonly model: ApprovalModel,
    next: () => void
  ) {
    super();
    this.button = button('', '', 'oc-status', next);
    this.node.append(this.button);
    this.node.setAttribute('role', 'status');
    model.changed.connect(() => this.draw());
    this.draw();
  }

  private draw(): void {
    const count = this.model.entries().length;
    const text = trans._n('%1 approval waiting', '%1 approvals waiting', count);
    setText(this.button, count ? text : '');
    this.button.setAttribute('aria-label', trans.__('%1: go to the next', text));
    this.button.title = trans.__('Go to the next approval');
    this.node.hidden = !count;
    this.setHidden(!count);
  }
}
