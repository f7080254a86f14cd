/** The status bar's item: how many approvals are pending; a click goes to the next. */

import type { IStatusBar } from '@jupyterlab/statusbar';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { ISignal } from '@lumino/signaling';
import * as React from 'react';
import type { ReactElement } from 'react';

import { trans } from '../../card/i18n';
import type { ApprovalModel } from './approvalModel';

/** The item; the status bar shows it while something is pending. */
export function createStatusItem(model: ApprovalModel, next: () => void): IStatusBar.IItem {
  const draw = (): ReactElement => {
    const { length } = model.approvals();
    const text = trans._n('%1 approval waiting', '%1 approvals waiting', length);
    return (
      <button type="button" className="oc-status" title={trans.__('Go to the next approval')} aria-label={trans.__('%1: go to the next', text)} onClick={next}>
        {text}
      </button>
    );
  };
  const item = ReactWidget.create(<UseSignal signal={model.changed}>{draw}</UseSignal>);
  item.node.setAttribute('role', 'status');
  return {
    item,
    align: 'left',
    rank: 900,
    isActive: () => model.approvals().length > 0,
    activeStateChanged: model.changed as unknown as ISignal<unknown, void>
  };
}
