/** The tab of MCP servers: how each is, what it wrote, and connecting, ending, signing in. */

import { button, el, hasFocus, safeLink, scrollBox, setText, show } from '../../card/dom';
import { visible, visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import { form, KeyedRows, labelled, statusLine, wordsOf } from '../controls';
import { Chooser } from '../kernelChooser';
import type { MakeSection, Surroundings } from '../section';

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

type Act = (what: string, more?: Record<string, unknown>) => void;

const states: Record<string, () => string> = {
  connected: () => trans.__('connected'),
  disabled: () => trans.__('not connected'),
  failed: () => trans.__('failed'),
  needs_auth: () => trans.__('sign-in needed'),
  needs_client_registration: () => trans.__('client id missing in its configuration')
};

/** One server. Its buttons stay while their server does, so that the focus does. */
class Entry {
  readonly node = el('li', 'oc-server');
  private readonly state = el('span', 'oc-badge');
  private readonly facts = el('p', 'oc-server-facts');
  private readonly note = statusLine();
  private readonly buttons = el('div', 'oc-tool-buttons');
  private readonly made = new Map<string, HTMLButtonElement>();
  private readonly login = el('div', 'oc-server-login');
  private readonly fold = el('details');
  private readonly log = el('pre', 'oc-tool-text');
  private drawn = '';

  constructor(
    private readonly name: string,
    private readonly act: Act
  ) {
    const head = el('h3', 'oc-server-name', visibleLine(name));
    head.append(' ', this.state);
    scrollBox(this.log, trans.__('Log of %1', visibleLine(name)));
    this.fold.append(el('summary', '', trans.__('Log')), this.log);
    this.make('server_connect', trans.__('Connect'));
    this.make('server_disconnect', trans.__('Disconnect'));
    this.make('server_sign_in', trans.__('Sign in'));
    this.make('server_sign_out', trans.__('Sign out'));
    this.node.append(head, this.facts, this.note, this.login, this.buttons, this.fold);
  }

  update(server: Server): void {
    const up = server.status === 'connected';
    setText(this.state, server.busy || (states[server.status]?.() ?? server.status));
    this.state.dataset.action = up ? 'allow' : server.status === 'disabled' ? '' : 'deny';
    const tools = server.tools === null ? '' : trans._n('%1 tool', '%1 tools', server.tools);
    setText(this.facts, [tools, server.transport, server.target, server.source, server.trust].filter(Boolean).map(fact => visibleLine(String(fact))).join(' · '));
    setText(this.note, visibleLine(server.said || server.note));
    show(this.note, this.note.textContent !== '');
    const connect = this.made.get('server_connect') as HTMLButtonElement;
    const words = up ? trans.__('Reconnect') : trans.__('Connect');
    setText(connect, words);
    connect.setAttribute('aria-label', `${words}: ${visibleLine(this.name)}`);
    show(this.made.get('server_disconnect') as HTMLElement, up || server.busy === 'connecting');
    show(this.made.get('server_sign_in') as HTMLElement, server.signsIn && !server.login);
    show(this.made.get('server_sign_out') as HTMLElement, server.signsIn);
    this.drawLogin(server.login);
    setText(this.log, server.log.map(line => visible(line)).join('\n'));
    show(this.fold, server.log.length > 0);
  }

  private make(what: string, words: string): void {
    const node = button(words, '', 'oc-panel-button', () => this.act(what));
    node.setAttribute('aria-label', `${words}: ${visibleLine(this.name)}`);
    this.made.set(what, node);
    this.buttons.append(node);
  }

  private drawLogin(login: Login | null): void {
    show(this.login, login !== null);
    const json = JSON.stringify(login);
    if (json === this.drawn) {
      return;
    }
    this.drawn = json;
    const focused = hasFocus(this.login);
    this.login.replaceChildren();
    if (!login) {
      if (focused) {
        this.made.get('server_connect')?.focus();
      }
      return;
    }
    const url = login.url && /^https?:\/\//i.test(login.url) ? safeLink(login.url) : undefined;
    if (url) {
      const link = el('a', '', trans.__('Open the sign-in page of %1', visibleLine(login.host)));
      link.href = url;
      link.target = '_blank';
      link.rel = 'noopener noreferrer';
      this.login.append(link);
      if (login.unencrypted) {
        this.login.append(el('p', 'oc-rules-origin', trans.__('This address is not encrypted: others on the network can read what is sent.')));
      }
      this.login.append(this.paste(login));
    } else {
      this.login.append(el('p', 'oc-rules-origin', trans.__('Looking for the sign-in page…')));
    }
    this.login.append(button(trans.__('Cancel sign-in'), '', 'oc-panel-button', () => this.act('server_cancel')));
    if (focused) {
      this.login.querySelector<HTMLElement>('a, button')?.focus();
    }
  }

  /** A field for the address that the browser ends at, where it can't come back to the kernel by itself. */
  private paste(login: Login): HTMLElement {
    const field = el('input', 'oc-panel-input');
    field.autocomplete = 'off';
    field.required = true;
    const words = login.comesBack ? trans.__('If the browser shows an error in the end, paste its address') : trans.__('Then paste the address that the browser shows in the end');
    return form('oc-rules-add', [labelled(words, field)], trans.__('Send'), () => {
      this.act('server_code', { address: field.value });
      field.value = '';
    });
  }
}

class ServersSection {
  readonly node = el('div', 'oc-servers');
  private readonly chooser: Chooser;
  private readonly list = el('ul', 'oc-servers-list');
  private readonly entries = new KeyedRows<Server, Entry>(
    this.list,
    ({ server }) => server,
    ({ server }) => new Entry(server, (what, more) => void this.act(what, server, more))
  );

  constructor(private readonly around: Surroundings) {
    this.chooser = new Chooser(around.hub, () => void this.update());
    this.list.setAttribute('aria-label', trans.__('MCP servers'));
    this.node.append(this.chooser.node, this.list);
  }

  update(): Promise<boolean> {
    const draw = ({ servers }: { servers: readonly Server[] }): void => {
      this.chooser.report(servers.length ? '' : trans.__('No MCP server yet. Add one in a cell: %1', '%mcp add NAME URL'));
      this.entries.update(servers, (entry, server) => entry.update(server));
    };
    return this.chooser.read(() => ({ what: 'servers' }), draw, () => this.entries.update([], () => undefined));
  }

  private async act(what: string, name: string, more: Record<string, unknown> = {}): Promise<void> {
    try {
      await this.around.hub.request(this.chooser.shown, { what, name, ...more });
      await this.update();
    } catch (error) {
      this.chooser.report(wordsOf(error));
    }
  }
}

/** Makes the section. */
export const makeServers: MakeSection = around => {
  const section = new ServersSection(around);
  return { id: 'servers', title: trans.__('Servers'), node: section.node, topics: ['servers'], update: () => section.update() };
};
