/** The plugin that shows the side panel. Each section has a folder of its own beside this one. */

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IStatusBar } from '@jupyterlab/statusbar';
import { consoleIcon } from '@jupyterlab/ui-components';

import { trans } from '../card/i18n';
import { IKernelHub } from '../kernel/hub';
import type { KernelHub } from '../kernel/hub';
import { createApprovals } from './approvals';
import { CallsSection } from './calls/section';
import { RulesSection } from './rules/section';
import type { PanelContext } from './section';
import { ServersSection } from './servers/section';
import { ToolPanel } from './toolPanel';
import { ToolsSection } from './tools/section';

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
    const reveal = (name: string): void => {
      panel.choose(name);
      if (panel.isVisible) {
        panel.activate(); // Notebook 7.4 and 7.5 would hide what is asked for again
      } else {
        app.shell.activateById(panel.id);
      }
    };
    const context: PanelContext = { app, hub, reveal };
    const approvals = createApprovals(context, palette, statusBar);
    const sections = [approvals, new CallsSection(context), new ToolsSection(context), new RulesSection(context), new ServersSection(context)];
    const panel = new ToolPanel(hub, sections, app.shell.currentChanged ?? null);
    approvals.model.changed.connect(() => panel.redraw(approvals));
    panel.title.icon = consoleIcon;
    app.shell.add(panel, 'right', { rank: 500, type: 'OpenCode tools' });
    restorer?.add(panel, panel.id);
    app.commands.addCommand(SHOW_PANEL, {
      label: trans.__('Show tool calls'),
      execute: async (args?: { section?: string }) => {
        // the palette gives the focus back to the notebook once the command has run
        await new Promise(resolve => setTimeout(resolve));
        reveal(String(args?.section ?? approvals.name));
      }
    });
    palette?.addItem({ command: SHOW_PANEL, category: trans.__('OpenCode tools') });
  }
};

export default plugin;
