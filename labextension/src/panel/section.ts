/** One part of the side panel: asks, calls, tools, permissions, servers. */

import type { JupyterFrontEnd } from '@jupyterlab/application';

import type { KernelHub, Topic } from '../kernel/hub';

/** What every section is made with. */
export interface Surroundings {
  app: JupyterFrontEnd;
  hub: KernelHub;
  /** Shows the section `id` in the side panel, and the panel itself. */
  reveal(id: string): void;
}

/** A section; `panel.ts` shows them as tabs. */
export interface Section {
  /** One word: `asks`. */
  id: string;
  /** Its tab's text. */
  title: string;
  /** What it shows; filled by the section itself. */
  node: HTMLElement;
  /** What it shows changes with these. */
  topics: readonly Topic[];
  /** Emitted when it has news of its own. */
  changed?: { connect(slot: () => void): unknown };
  /** How many things wait in it, told on its tab; 0: nothing is told. */
  count?(): number;
  /**
   * Draws what it shows anew, as it is in the kernels now. Called when one of its topics has changed or the document in
   * front has, while it is visible, and when it becomes visible; `kernelId` is the kernel that changed, if one did.
   * Gives false where the kernel did not answer: it is called again then, while it is seen or when it is seen again.
   */
  update(kernelId?: string): void | Promise<void | boolean>;
  /** Gives the focus to what a person wants there first. */
  focus?(): void;
}

/** Makes a section. */
export type MakeSection = (surroundings: Surroundings) => Section;
