/** The plugin that shows the side panel. Each section has a folder of its own beside this one. */

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IStatusBar } from '@jupyterlab/statusbar';
import { consoleIcon } from '@jupyterlab/ui-components';

import { makeApprovals } from './approvals';
import { makeCalls } from './calls/section';
import { trans } from '../card/i18n';
import { makeRules } from './rules/section';
import { makeServers } from './servers/section';
import { makeTools } from './tools/section';
import { IKernelHub } from '../kernel/hub';
import type { KernelHub } from '../kernel/hub';
import { ToolPanel } from './panel';
import type { MakeSection } from './section';

/** The sections after the asks, in the order of their tabs. */
const SECTIONS: readonly MakeSection[] = [makeCalls, makeTools, makeRules, makeServers];
/** The panel's command. */
export const SHOW_PANEL = 'opencode-jupyter:show-panel';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'opencode-jupyter:panel',
  description: 'A side panel of the tool calls of all open notebooks.',
  autoStart: true,
  requires: [IKernelHub],
  optional: [ICommandPalette, ILayoutRestorer, IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    hub: KernelHub,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    statusBar: IStatusBar | null
  ): void => {
    let panel: ToolPanel | undefined;
    const reveal = (id: string): void => {
      panel?.choose(id);
      if (panel?.isVisible) {
        panel.activate(); // Notebook 7.4 and 7.5 would hide what is asked for again
      } else {
        app.shell.activateById(panel?.id ?? '');
      }
    };
    const surroundings = { app, hub, reveal };
    const sections = [makeApprovals(surroundings, { palette, statusBar }), ...SECTIONS.map(make => make(surroundings))];
    panel = new ToolPanel(hub, sections, app.shell.currentChanged ?? null);
    panel.title.icon = consoleIcon;
    app.shell.add(panel, 'right', { rank: 500, type: 'OpenCode tools' });
    restorer?.add(panel, panel.id);
    app.commands.addCommand(SHOW_PANEL, {
      label: trans.__('Show tool calls'),
      execute: async (args?: { section?: string }) => {
        // the palette gives the focus back to the notebook once the command has run
        await new Promise(resolve => setTimeout(resolve));
        reveal(String(args?.section ?? sections[0]?.id ?? ''));
      }
    });
    palette?.addItem({ command: SHOW_PANEL, category: trans.__('OpenCode tools') });
  }
};

export default plugin;
