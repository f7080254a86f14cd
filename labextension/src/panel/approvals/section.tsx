/** The tab of approvals: everything that is pending in the open notebooks, oldest first, each answered as on its card. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { disposeCard, renderCard } from '../../card';
import type { CardCallbacks, CardPart } from '../../card';
import { visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import { Button, useFocusFallback } from '../formControls';
import { Section } from '../section';
import { similarTo } from './approvalModel';
import type { Approval, ApprovalModel } from './approvalModel';
import { focusGuarded } from './cardKeyboard';

/** A button that answers several requests is dead this long after their number has changed. */
const GUARD_MS = 600;

/** What the section does with the kernels. */
export interface ApprovalActions {
  callbacks(approval: Approval): CardCallbacks;
  /** Goes to the card in the notebook. */
  show(approval: Approval): void;
  /** Allows each once. */
  allow(approvals: readonly Approval[]): void;
  /** Denies each. */
  deny(approvals: readonly Approval[]): void;
}

/** Whether `count` has been the same for a moment: a click that was meant for two must not allow three. */
function useIsSteady(count: number): boolean {
  const [steady, setSteady] = React.useState(-1);
  React.useEffect(() => {
    const timer = setTimeout(() => setSteady(count), GUARD_MS);
    return () => clearTimeout(timer);
  }, [count]);
  return steady === count;
}

/** The card of a call, as in the notebook. */
function Card({ part, callbacks }: { part: CardPart; callbacks: CardCallbacks }): ReactElement {
  const [root, setRoot] = React.useState<HTMLElement | null>(null);
  React.useLayoutEffect(() => {
    if (root) {
      renderCard(root, part, callbacks);
    }
  });
  React.useEffect(() => () => void (root && disposeCard(root)), [root]);
  return <div ref={setRoot} />;
}

interface RowProps {
  approval: Approval;
  similar: readonly Approval[];
  actions: ApprovalActions;
}

function ApprovalRow({ approval, similar, actions }: RowProps): ReactElement {
  const { name, agent, card } = approval;
  const isSteady = useIsSteady(similar.length);
  return (
    <li className="oc-asks-item">
      <div className="oc-asks-head">
        <span className="oc-asks-from">{visibleLine(agent && card?.ui.by === 'model' ? `${name} · ${agent}` : name)}</span>
        {similar.length > 1 && (
          <Button disabled={!isSteady} onClick={() => actions.allow(similar)}>
            {trans.__('Allow all %1 like this once', similar.length)}
          </Button>
        )}
        <Button title={trans.__('Go to its card in the notebook')} onClick={() => actions.show(approval)}>
          {trans.__('Show')}
        </Button>
      </div>
      {card && <Card part={card} callbacks={actions.callbacks(approval)} />}
    </li>
  );
}

function ApprovalList({ approvals, actions }: { approvals: readonly Approval[]; actions: ApprovalActions }): ReactElement {
  const count = approvals.length;
  const isSteady = useIsSteady(count);
  return (
    <>
      <div className="oc-asks-bar">
        <span className="oc-asks-said" role="status">
          {trans._n('%1 approval waiting', '%1 approvals waiting', count)}
        </span>
        <Button disabled={!isSteady} onClick={() => actions.deny(approvals)}>
          {count > 1 ? trans.__('Deny all %1', count) : trans.__('Deny')}
        </Button>
      </div>
      <ol className="oc-asks-list" aria-label={trans.__('Pending approvals, oldest first')}>
        {approvals.map(approval => (
          <ApprovalRow key={approval.id} approval={approval} similar={similarTo(approval, approvals)} actions={actions} />
        ))}
      </ol>
    </>
  );
}

/** What is drawn, in a box whose focus goes on to the next card when what was answered had it. */
function FocusBox({ onFocusLost, children }: { onFocusLost(): void; children: ReactElement }): ReactElement {
  const box = React.useRef<HTMLDivElement>(null);
  useFocusFallback(box, onFocusLost);
  return <div ref={box}>{children}</div>;
}

export class ApprovalsSection extends Section {
  /**
   * @param actions - Made for the section, which stands for what they show.
   * @param countKernels - How many open kernels have the extension.
   */
  constructor(
    readonly model: ApprovalModel,
    private readonly actions: ApprovalActions,
    private readonly countKernels: () => number
  ) {
    super('asks', trans.__('Approvals'), []);
    this.node.tabIndex = -1;
  }

  count(): number {
    return this.model.approvals().length;
  }

  refresh(): boolean {
    this.update();
    return true;
  }

  takeFocus(): boolean {
    void this.renderPromise?.then(() => (this.firstCard ?? this.node).focus());
    return true;
  }

  protected render(): ReactElement {
    const approvals = this.model.approvals().filter(({ card }) => card);
    const empty = this.countKernels()
      ? trans.__('No approvals are waiting. Requests from all open notebooks appear here.')
      : trans.__('No open notebook has the tools loaded. Run %1 in one; its requests appear here.', '%load_ext opencode_jupyter');
    return (
      <FocusBox onFocusLost={() => this.focusNext()}>
        {approvals.length ? <ApprovalList approvals={approvals} actions={this.actions} /> : <p className="oc-panel-empty">{empty}</p>}
      </FocusBox>
    );
  }

  private get firstCard(): HTMLElement | null {
    return this.node.querySelector<HTMLElement>('.oc-card');
  }

  private focusNext(): void {
    const { firstCard } = this;
    if (firstCard) {
      focusGuarded(firstCard);
      firstCard.closest('li')?.scrollIntoView({ block: 'nearest' });
    } else {
      this.node.focus();
    }
  }
}
