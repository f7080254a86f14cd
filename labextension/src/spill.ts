/** Opens the whole of a cut output: a tab of its own in JupyterLab, a dialog where the shell has one main place. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Widget } from '@lumino/widgets';

import { button, el } from './card/dom';
import { visibleLine } from './card/format';
import type { CardSpill } from './card/token';
import { PageViewer } from './pages';
import type { Fetch } from './pages';

const TAB_ID = 'opencode-spill-';

/** A tab with a viewer; closing it ends it. */
class SpillTab extends Widget {
  constructor(
    spill: CardSpill,
    private readonly viewer: PageViewer
  ) {
    super({ node: viewer.node });
    this.id = `${TAB_ID}${encodeURIComponent(spill.path)}`;
    this.title.label = name(spill);
    this.title.caption = visibleLine(spill.path);
    this.title.closable = true;
  }

  /** Goes to the line once more, for a second click on the link. */
  goTo(line: number): void {
    void this.viewer.goTo(line);
  }

  protected onActivateRequest(): void {
    this.viewer.focus();
  }

  protected onCloseRequest(): void {
    this.dispose();
  }
}

function name({ path }: CardSpill): string {
  return visibleLine(path.split(/[\\/]/).pop() ?? 'output');
}

/** Shows `spill` from its line on. */
export function openSpill(app: JupyterFrontEnd, spill: CardSpill, fetch: Fetch): void {
  const viewer = new PageViewer(spill, fetch);
  const tab = new SpillTab(spill, viewer);
  if (app.name !== 'JupyterLab') {
    tab.dispose();
    openDialog(spill, viewer);
  } else {
    const others = [...app.shell.widgets('main')].filter(widget => widget.id.startsWith(TAB_ID));
    const open = others.find(widget => widget.id === tab.id) as SpillTab | undefined;
    if (open) {
      tab.dispose();
      open.goTo(spill.line);
    } else {
      // beside the notebook; a second one beside the first
      app.shell.add(tab, 'main', others.length ? { mode: 'tab-after', ref: others[0].id } : { mode: 'split-right' });
    }
    app.shell.activateById(tab.id);
    if (open) {
      return;
    }
  }
  void viewer.goTo(spill.line);
}

function openDialog(spill: CardSpill, viewer: PageViewer): void {
  const dialog = el('dialog', 'oc-dialog');
  dialog.setAttribute('aria-label', `Whole output ${name(spill)}`);
  // Jupyter's own keys stay away from what is typed here
  dialog.setAttribute('data-lm-suppress-shortcuts', '');
  const head = el('div', 'oc-dialog-head');
  head.append(
    el('span', '', name(spill)),
    button('Close', '', 'oc-button', () => dialog.close())
  );
  dialog.append(head, viewer.node);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  viewer.focus();
}
