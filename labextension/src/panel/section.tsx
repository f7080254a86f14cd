/** One tab of the side panel: approvals, calls, tools, permissions, servers. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { ReactWidget } from '@jupyterlab/ui-components';

import type { KernelHub, Topic } from '../kernel/hub';

/** The panel's id, with which those of its parts begin. */
export const PANEL_ID = 'opencode-jupyter-panel';

/** What every section is made with. */
export interface PanelContext {
  app: JupyterFrontEnd;
  hub: KernelHub;
  /** Shows the section `name` in the side panel, and the panel itself. */
  reveal(name: string): void;
}

/** A section; its title is its tab's text. */
export abstract class Section extends ReactWidget {
  /**
   * @param name - One word: `asks`.
   * @param label - Its tab's text.
   * @param topics - What it shows changes with these.
   */
  constructor(
    readonly name: string,
    readonly label: string,
    readonly topics: readonly Topic[]
  ) {
    super();
    this.id = `${PANEL_ID}-${name}`;
    this.title.label = label;
    this.addClass('oc-panel-page');
    this.addClass(`oc-${name}`);
    this.node.setAttribute('role', 'tabpanel');
    this.node.setAttribute('aria-labelledby', `${this.id}-tab`);
  }

  /** How many things wait in it, told on its tab. */
  count(): number {
    return 0;
  }

  /**
   * Draws it as it is in the kernels now. Called when one of its topics has changed or the document in front has, while it
   * is visible, and when it becomes visible. Gives false where the kernel did not answer: then it is called again.
   */
  abstract refresh(): Promise<boolean> | boolean;

  /** Gives the focus to what a person needs there first; false: to its tab. */
  takeFocus(): boolean {
    return false;
  }
}
