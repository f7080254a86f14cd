/** Opens the whole of a cut output: a tab of its own in JupyterLab, a dialog where the shell has one main place. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Widget } from '@lumino/widgets';

import { button, el } from '../card/dom';
import { shorten, visibleLine } from '../card/format';
import type { SpillLink } from '../card/types';
import { trans } from '../card/i18n';
import { Source } from './source';
import type { SendRequest } from './source';
import { Viewer } from './viewer';

const TAB_ID = 'opencode-spill-';

/** A tab with a viewer. Closing it ends the viewer and gives the focus back to what opened it. */
class SpillTab extends Widget {
  private opener: Element | null = document.activeElement;

  constructor(
    spill: SpillLink,
    readonly viewer: Viewer,
    readonly source: Source,
    private readonly shell: JupyterFrontEnd.IShell
  ) {
    super({ node: viewer.node });
    // the viewer's own listener comes first: an Escape that closes its search is prevented there
    this.node.addEventListener('keydown', event => event.key === 'Escape' && !event.defaultPrevented && this.close());
    this.id = `${TAB_ID}${encodeURIComponent(spill.path)}`;
    this.title.label = name(spill);
    this.title.caption = visibleLine(spill.path);
    this.title.closable = true;
  }

  /** Opened once more, with the kernel of now. */
  reopen(ask: SendRequest): void {
    this.source.sendBy(ask);
    this.opener = document.activeElement;
  }

  dispose(): void {
    this.viewer.dispose();
    super.dispose();
  }

  protected onActivateRequest(): void {
    this.viewer.focus();
  }

  /** A browser forgets how far something is scrolled that is not displayed. */
  protected onAfterAttach(): void {
    this.hiddenMode = Widget.HiddenMode.ContentVisibility;
  }

  protected onCloseRequest(): void {
    const focused = this.node.contains(document.activeElement);
    this.dispose();
    if (focused) {
      (this.opener as HTMLElement | null)?.focus({ preventScroll: true });
      if (document.activeElement === document.body) {
        this.shell.currentWidget?.activate();
      }
    }
  }
}

/** Longest name of a tab. */
const NAME_CHARS = 60;

/** What the viewer is called: the call, else the file. */
function name({ path, title }: SpillLink): string {
  return shorten(visibleLine(title || (path.split(/[\\/]/).pop() ?? 'output')), NAME_CHARS);
}

/** Shows `spill` from its line on; one that is still written, from its end. */
export function openSpill(app: JupyterFrontEnd, spill: SpillLink, ask: SendRequest): void {
  const source = new Source(spill.path, ask);
  let viewer = new Viewer(spill, source);
  if (app.name !== 'JupyterLab') {
    openDialog(spill, viewer);
  } else {
    const tab = new SpillTab(spill, viewer, source, app.shell);
    const others = [...app.shell.widgets('main')].filter(widget => widget.id.startsWith(TAB_ID)) as SpillTab[];
    const open = others.find(widget => widget.id === tab.id);
    if (open) {
      tab.dispose();
      open.reopen(ask);
      viewer = open.viewer;
    } else {
      // beside the notebook; a second one beside the first
      app.shell.add(tab, 'main', others.length ? { mode: 'tab-after', ref: others[0].id } : { mode: 'split-right' });
    }
    app.shell.activateById(tab.id);
  }
  if (spill.writing) {
    viewer.follow(true);
  } else {
    void viewer.goTo(spill.line);
  }
}

function openDialog(spill: SpillLink, viewer: Viewer): void {
  const dialog = el('dialog', 'oc-dialog');
  dialog.setAttribute('aria-label', trans.__('Whole output %1', name(spill)));
  // Jupyter's own keys stay away from what is typed here
  dialog.setAttribute('data-lm-suppress-shortcuts', '');
  const head = el('div', 'oc-dialog-head');
  head.append(
    el('span', '', name(spill)),
    button(trans.__('Close'), '', 'oc-button', () => dialog.close())
  );
  dialog.append(head, viewer.node);
  dialog.addEventListener('close', () => {
    viewer.dispose();
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  viewer.focus();
}
