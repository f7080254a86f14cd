/** The tab of tools: which there are and what the rules decide about a call of each; one of them as a form. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { errorMessage, visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import type { PanelRequest } from '../../kernel/hub';
import { Badge, Button, Select, Status, TextField } from '../formControls';
import { KernelSection } from '../kernelSection';
import type { Action } from '../rules/messages';
import type { PanelContext } from '../section';
import { MISSING, matches, toolKinds, toolRows } from './messages';
import type { Decided, ToolRow, ToolsReply } from './messages';
import { ToolForm } from './toolForm';
import type { ToolReply } from './toolForm';

const kindText = (kind: string): string =>
  ({
    builtin: trans.__('built in'),
    cell: trans.__('cell'),
    file: trans.__('file'),
    package: trans.__('package'),
    mcp: trans.__('MCP server'),
    javascript: trans.__('JavaScript'),
    [MISSING]: trans.__('unavailable')
  })[kind] ?? kind;

const actionText = (action: Action): string => ({ allow: trans.__('runs'), ask: trans.__('asks'), deny: trans.__('denied') })[action] ?? action;

/** @param focused - Takes the focus when it is drawn first, and reports it. */
function ToolItem({ tool, focused, onFocused, open }: { tool: ToolRow; focused: boolean; onFocused(): void; open(name: string): void }): ReactElement {
  const button = React.useRef<HTMLButtonElement>(null);
  React.useEffect(() => {
    if (focused) {
      button.current?.focus();
      onFocused();
    }
  }, []);
  const { name, kind, source, user, model, reason, summary } = tool;
  const decided = (caller: string, decision: Decided | undefined): ReactElement | undefined =>
    decision && (
      <Badge action={decision.action} title={visibleLine(decision.rule)}>
        {`${caller} ${actionText(decision.action)}`}
      </Badge>
    );
  const content = (
    <>
      <span className="oc-tools-name">{visibleLine(name)}</span>
      <span className="oc-tools-decided">
        {decided(trans.__('you:'), user)}
        {decided(trans.__('model:'), model)}
      </span>
      {kind !== 'builtin' && <span className="oc-tools-source">{visibleLine(`${kindText(kind)}: ${source}`)}</span>}
      <span className="oc-tools-summary">{visibleLine(reason ?? summary)}</span>
    </>
  );
  return (
    <li>
      {kind === MISSING ? (
        <div className="oc-tools-row">{content}</div>
      ) : (
        <button type="button" className="oc-tools-row" ref={button} onClick={() => open(name)}>
          {content}
        </button>
      )}
    </li>
  );
}

export class ToolsSection extends KernelSection<ToolsReply> {
  private text = '';
  private kind = '';
  private opened: ToolReply | undefined;
  /** The tool that was opened last: back in the list, it takes the focus once. */
  private last = '';

  constructor(context: PanelContext) {
    super(context, 'tools', trans.__('Tools'), ['tools', 'rules']);
  }

  takeFocus(): boolean {
    const field = this.node.querySelector<HTMLElement>('input');
    field?.focus();
    return field !== null;
  }

  protected request(): PanelRequest {
    return { what: 'tools' };
  }

  protected reset(): void {
    super.reset();
    this.opened = undefined;
    this.last = '';
  }

  protected renderReply(reply: ToolsReply): ReactElement {
    const { opened, context, kernel } = this;
    if (opened) {
      const close = (): void => {
        this.opened = undefined;
        this.update();
      };
      return (
        <>
          <Button onClick={close}>{trans.__('All tools')}</Button>
          <ToolForm context={context} tool={opened} getKernel={() => context.hub.kernels().find(({ id }) => id === kernel?.id)} />
        </>
      );
    }
    const all = toolRows(reply);
    const kinds = toolKinds(all);
    // a choice that the list no longer has could not be taken back
    this.kind = kinds.includes(this.kind) ? this.kind : '';
    const shown = all.filter(row => matches(row, this.text, this.kind));
    const of = shown.length < all.length ? ` ${trans.__('of %1', all.length)}` : '';
    const filter = (field: 'text' | 'kind') => (value: string) => {
      this[field] = value;
      this.update();
    };
    return (
      <>
        <div className="oc-panel-bar">
          <TextField type="search" label={trans.__('Filter by text')} hideLabel placeholder={trans.__('Filter by text')} defaultValue={this.text} onChange={event => filter('text')(event.target.value)} />
          <Select
            label={trans.__('Source')}
            hideLabel
            value={this.kind}
            choices={[['', trans.__('all sources')], ...kinds.map(kind => [kind, kindText(kind)] as const)]}
            onChange={filter('kind')}
          />
        </div>
        <Status>{trans._n('%1 tool', '%1 tools', shown.length) + of}</Status>
        <ul className="oc-tools-list" aria-label={trans.__('Tools')}>
          {shown.map(tool => (
            // tools of one name may be missing from several sources
            <ToolItem key={`${tool.kind === MISSING ? tool.source : ''}\0${tool.name}`} tool={tool} focused={tool.name === this.last} onFocused={() => (this.last = '')} open={name => void this.open(name)} />
          ))}
        </ul>
      </>
    );
  }

  private async open(name: string): Promise<void> {
    const { kernel } = this;
    try {
      const tool = await this.context.hub.request<ToolReply>(kernel?.id ?? '', { what: 'tool', name });
      if (kernel?.id === this.kernel?.id) {
        this.message = '';
        this.opened = tool;
        this.last = name;
      }
    } catch (error) {
      this.message = errorMessage(error);
    }
    this.update();
  }
}
