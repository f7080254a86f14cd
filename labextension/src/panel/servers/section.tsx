/** The tab of MCP servers: how each is, what it wrote, and connecting, ending, signing in. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { safeLink } from '../../card/dom';
import { errorMessage, visible, visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import type { PanelRequest } from '../../kernel/hub';
import { Badge, Button, Form, Status, TextField, useFocusFallback } from '../formControls';
import { KernelSection } from '../kernelSection';
import type { PanelContext } from '../section';

/** A login that is under way. */
interface Login {
  url: string | null;
  host: string;
  comesBack: boolean;
  unencrypted: boolean;
}

interface Server {
  server: string;
  status: string;
  tools: number | null;
  transport: string | null;
  target: string;
  source: string;
  trust: string;
  note: string;
  log: string[];
  busy: string;
  said: string;
  signsIn: boolean;
  login: Login | null;
}

/** Requests something of a server: connecting, a code. */
type Act = (what: string, more?: Record<string, unknown>) => void;

const stateText = (status: string): string =>
  ({
    connected: trans.__('connected'),
    disabled: trans.__('not connected'),
    failed: trans.__('failed'),
    needs_auth: trans.__('sign-in needed'),
    needs_client_registration: trans.__('client id missing in its configuration')
  })[status] ?? status;

function ServerItem({ server, act }: { server: Server; act: Act }): ReactElement {
  const item = React.useRef<HTMLLIElement>(null);
  useFocusFallback(item, () => item.current?.querySelector<HTMLElement>('a, button')?.focus());
  const name = visibleLine(server.server);
  const isConnected = server.status === 'connected';
  const tools = server.tools === null ? '' : trans._n('%1 tool', '%1 tools', server.tools);
  const facts = [tools, server.transport, server.target, server.source, server.trust].filter(Boolean);
  const button = (what: string, label: string, shown = true): ReactElement | false =>
    shown && (
      <Button key={what} aria-label={`${label}: ${name}`} onClick={() => act(what)}>
        {label}
      </Button>
    );
  return (
    <li className="oc-server" ref={item}>
      <h3 className="oc-server-name">
        {name} <Badge action={isConnected ? 'allow' : server.status === 'disabled' ? '' : 'deny'}>{server.busy || stateText(server.status)}</Badge>
      </h3>
      <p className="oc-server-facts">{facts.map(fact => visibleLine(String(fact))).join(' · ')}</p>
      <Status>{visibleLine(server.said || server.note)}</Status>
      {server.login && <SignIn login={server.login} act={act} />}
      <div className="oc-tool-buttons">
        {button('server_connect', isConnected ? trans.__('Reconnect') : trans.__('Connect'))}
        {button('server_disconnect', trans.__('Disconnect'), isConnected || server.busy === 'connecting')}
        {button('server_sign_in', trans.__('Sign in'), server.signsIn && !server.login)}
        {button('server_sign_out', trans.__('Sign out'), server.signsIn)}
      </div>
      {server.log.length > 0 && (
        <details>
          <summary>{trans.__('Log')}</summary>
          <pre className="oc-tool-text" tabIndex={0} role="group" aria-label={trans.__('Log of %1', name)}>
            {server.log.map(visible).join('\n')}
          </pre>
        </details>
      )}
    </li>
  );
}

/** The page to sign in at, and a field for the address that the browser ends at, where it can't come back by itself. */
function SignIn({ login, act }: { login: Login; act: Act }): ReactElement {
  const url = login.url && /^https?:\/\//i.test(login.url) ? safeLink(login.url) : undefined;
  const label = login.comesBack
    ? trans.__('If the browser shows an error in the end, paste its address')
    : trans.__('Then paste the address that the browser shows in the end');
  const send = (address: string, form: HTMLFormElement): void => {
    act('server_code', { address });
    form.reset();
  };
  return (
    <div className="oc-server-login">
      {url ? (
        <>
          <a href={url} target="_blank" rel="noopener noreferrer">
            {trans.__('Open the sign-in page of %1', visibleLine(login.host))}
          </a>
          {login.unencrypted && <p className="oc-rules-origin">{trans.__('This address is not encrypted: others on the network can read what is sent.')}</p>}
          <Form className="oc-rules-add" submit={trans.__('Send')} onSubmit={({ address }, form) => send(address, form)}>
            <TextField label={label} name="address" autoComplete="off" required />
          </Form>
        </>
      ) : (
        <p className="oc-rules-origin">{trans.__('Looking for the sign-in page…')}</p>
      )}
      <Button onClick={() => act('server_cancel')}>{trans.__('Cancel sign-in')}</Button>
    </div>
  );
}

export class ServersSection extends KernelSection<{ servers: readonly Server[] }> {
  constructor(context: PanelContext) {
    super(context, 'servers', trans.__('Servers'), ['servers']);
  }

  protected request(): PanelRequest {
    return { what: 'servers' };
  }

  protected renderReply({ servers }: { servers: readonly Server[] }): ReactElement {
    if (!servers.length) {
      return <p className="oc-panel-empty">{trans.__('No MCP server yet. Add one in a cell: %1', '%mcp add NAME URL')}</p>;
    }
    return (
      <ul className="oc-servers-list" aria-label={trans.__('MCP servers')}>
        {servers.map(server => (
          <ServerItem key={server.server} server={server} act={(what, more) => void this.act({ what, name: server.server, ...more })} />
        ))}
      </ul>
    );
  }

  private async act(request: PanelRequest): Promise<void> {
    try {
      await this.context.hub.request(this.kernel?.id ?? '', request);
      await this.refresh();
    } catch (error) {
      this.message = errorMessage(error);
      this.update();
    }
  }
}
