/**
 * The JupyterLab plugin for notebooks that tools read and change: a notebook that is open here is changed here, where
 * a person sees it, and its unsaved work is kept.
 */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { UUID } from '@lumino/coreutils';

import { IKernelHub } from '../kernel/hub';
import type { KernelHub } from '../kernel/hub';
import { openWidgets } from '../kernel/requests';
import { Documents } from './documents';
import type { Context } from './documents';
import { performJobs } from './jobs';
import { Relay } from './relay';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'opencode-jupyter:notebook',
  description: 'Changes open notebooks for the notebook tools of opencode_jupyter.',
  autoStart: true,
  requires: [IKernelHub],
  activate: (app: JupyterFrontEnd, hub: KernelHub): void => {
    const { paths } = app as { paths?: Partial<JupyterFrontEnd.IPaths> };
    const page = UUID.uuid4();
    const contexts = (): Context[] => openWidgets<{ context?: Context }>(app.shell).flatMap(({ context }) => context ?? []);
    const documents = new Documents(page, paths?.directories?.serverRoot ?? '', contexts);
    // other tabs on the same server: several servers may share an origin
    const channel = new BroadcastChannel(`opencode-jupyter:${paths?.urls?.base ?? ''}`);
    const relay = new Relay(page, channel, (job, kernelId) => documents.perform(job, kernelId));
    addEventListener('pagehide', () => relay.leave());
    performJobs(hub, documents, relay);
  }
};

export default plugin;
