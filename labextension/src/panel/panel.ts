/** The side panel: sections as tabs, of which one is seen. A section that is not seen asks its kernels for nothing. */

import { Widget } from '@lumino/widgets';

import { el, setRole, setText } from '../card/dom';
import { trans } from '../card/i18n';
import type { Change, KernelHub } from '../kernel/hub';
import type { Section } from './section';

/** Changes within this time are drawn together. */
const TOGETHER_MS = 50;

/** A kernel that did not answer is asked again after so long: when it can again, it nudges nobody. */
const AGAIN_MS = 2_000;

/** JupyterLab's widget for it. */
export class ToolPanel extends Widget {
  private readonly tabs = new Map<string, HTMLButtonElement>();
  private readonly stale = new Set<string>();
  private readonly pages = el('div', 'oc-panel-pages');
  private chosen = '';
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    hub: KernelHub,
    private readonly sections: readonly Section[],
    front: { connect(slot: () => void): unknown } | null = null
  ) {
    super();
    this.id = 'opencode-jupyter-panel';
    this.title.caption = trans.__('Tool calls: approvals, calls, tools, permissions, servers');
    this.node.classList.add('oc-panel');
    setRole(this.node, 'region', trans.__('OpenCode tools'));
    const bar = el('div', 'oc-panel-tabs');
    bar.setAttribute('role', 'tablist');
    bar.addEventListener('keydown', event => this.move(event));
    for (const section of sections) {
      const tab = el('button', 'oc-panel-tab', section.title);
      tab.type = 'button';
      tab.id = `${this.id}-tab-${section.id}`;
      tab.setAttribute('role', 'tab');
      tab.setAttribute('aria-controls', `${this.id}-${section.id}`);
      tab.addEventListener('click', () => this.choose(section.id));
      this.tabs.set(section.id, tab);
      bar.append(tab);
      section.node.id = `${this.id}-${section.id}`;
      section.node.classList.add('oc-panel-page');
      section.node.setAttribute('role', 'tabpanel');
      section.node.setAttribute('aria-labelledby', tab.id);
      this.pages.append(section.node);
      this.stale.add(section.id);
    }
    this.node.append(bar, this.pages);
    hub.changed.connect((_, change) => this.handleChange(change));
    for (const section of sections) {
      section.changed?.connect(() => {
        this.stale.add(section.id);
        this.drawSoon('');
      });
    }
    front?.connect(() => this.handleChange({ kernelId: '', topics: ['hello'] }));
    this.choose(sections[0]?.id ?? '');
  }

  /** Shows the section `id`. */
  choose(id: string): void {
    if (!this.tabs.has(id)) {
      return;
    }
    this.chosen = id;
    for (const section of this.sections) {
      const on = section.id === id;
      const tab = this.tabs.get(section.id) as HTMLButtonElement;
      tab.setAttribute('aria-selected', String(on));
      tab.tabIndex = on ? 0 : -1;
      section.node.hidden = !on;
    }
    this.draw();
  }

  /** Tells how much waits in each section on its tab. */
  setCounts(): void {
    for (const section of this.sections) {
      const count = section.count?.() ?? 0;
      setText(this.tabs.get(section.id) as HTMLElement, count ? `${section.title} (${count})` : section.title);
    }
  }

  protected onAfterShow(): void {
    this.draw();
  }

  protected onActivateRequest(): void {
    const section = this.sections.find(({ id }) => id === this.chosen);
    if (section?.focus) {
      section.focus();
    } else {
      this.tabs.get(this.chosen)?.focus();
    }
  }

  private handleChange({ kernelId, topics }: Change): void {
    for (const section of this.sections) {
      if (topics.includes('hello') || section.topics.some(topic => topics.includes(topic))) {
        this.stale.add(section.id);
      }
    }
    this.drawSoon(kernelId);
  }

  private drawSoon(kernelId: string): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.draw(kernelId);
    }, TOGETHER_MS);
  }

  private draw(kernelId = ''): void {
    const section = this.sections.find(({ id }) => id === this.chosen);
    if (section && this.isVisible && this.stale.delete(section.id)) {
      void Promise.resolve(section.update(kernelId)).then(answered => {
        this.setCounts();
        if (answered === false) {
          this.stale.add(section.id);
          setTimeout(() => this.draw(), AGAIN_MS);
        }
      });
    }
    this.setCounts();
  }

  private move(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      const at = this.sections.findIndex(({ id }) => id === this.chosen);
      const next = this.sections[(at + step + this.sections.length) % this.sections.length];
      this.choose(next.id);
      this.tabs.get(next.id)?.focus();
      event.preventDefault();
    }
  }
}
