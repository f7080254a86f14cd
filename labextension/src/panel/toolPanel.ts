/** The side panel: sections as tabs, of which one is shown. A section that is not shown requests nothing of its kernels. */

import { Panel, TabBar } from '@lumino/widgets';
import type { Widget } from '@lumino/widgets';

import { setRole } from '../card/dom';
import { trans } from '../card/i18n';
import type { Change, KernelHub } from '../kernel/hub';
import { PANEL_ID } from './section';
import type { Section } from './section';

/** Changes within this time are drawn together. */
const TOGETHER_MS = 50;
/** A kernel that did not answer is asked again after so long: when it can again, it sends no notification. */
const RETRY_MS = 2_000;

class TabRenderer extends TabBar.Renderer {
  createTabKey({ title }: TabBar.IRenderData<Widget>): string {
    return `${title.owner.id}-tab`;
  }

  createTabARIA(data: TabBar.IRenderData<Widget>): ReturnType<TabBar.Renderer['createTabARIA']> {
    return { ...super.createTabARIA(data), 'aria-controls': data.title.owner.id, tabindex: data.current ? '0' : '-1' };
  }
}

/** Tabs of which the one that a key gives the focus is shown. */
class SectionTabs extends TabBar<Widget> {
  handleEvent(event: Event): void {
    super.handleEvent(event);
    const focused = [...this.contentNode.children].indexOf(document.activeElement as Element);
    if (event.type === 'keydown' && focused >= 0) {
      this.currentIndex = focused;
    }
  }
}

/** JupyterLab's widget for it. */
export class ToolPanel extends Panel {
  private readonly bar = new SectionTabs({ renderer: new TabRenderer() });
  private readonly stale: Set<Section>;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    hub: KernelHub,
    private readonly sections: readonly Section[],
    front: { connect(slot: () => void): unknown } | null = null
  ) {
    super();
    this.id = PANEL_ID;
    this.title.caption = trans.__('Tool calls: approvals, calls, tools, permissions, servers');
    this.addClass('oc-panel');
    setRole(this.node, 'region', trans.__('OpenCode tools'));
    this.stale = new Set(sections);
    this.bar.currentChanged.connect(() => this.showCurrent());
    this.addWidget(this.bar);
    for (const section of sections) {
      this.bar.addTab(section.title);
      this.addWidget(section);
    }
    hub.changed.connect((_, change) => this.handleChange(change));
    front?.connect(() => this.handleChange({ topics: ['hello'] }));
    this.showCurrent();
  }

  /** Shows the section `name`. */
  choose(name: string): void {
    this.bar.currentTitle = this.sections.find(section => section.name === name)?.title ?? this.bar.currentTitle;
    this.draw();
  }

  /** The section has changed by itself. */
  redraw(section: Section): void {
    this.stale.add(section);
    this.drawSoon();
  }

  protected onAfterShow(): void {
    this.draw();
  }

  protected onActivateRequest(): void {
    if (!this.current?.takeFocus()) {
      this.bar.contentNode.querySelector<HTMLElement>('[aria-selected=true]')?.focus();
    }
  }

  private get current(): Section | undefined {
    return this.sections.find(({ title }) => title === this.bar.currentTitle);
  }

  private showCurrent(): void {
    this.sections.forEach(section => section.setHidden(section !== this.current));
    this.draw();
  }

  private handleChange({ topics }: Pick<Change, 'topics'>): void {
    this.sections
      .filter(section => topics.includes('hello') || section.topics.some(topic => topics.includes(topic)))
      .forEach(section => this.stale.add(section));
    this.drawSoon();
  }

  private drawSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.draw();
    }, TOGETHER_MS);
  }

  private draw(): void {
    const { current } = this;
    if (current && this.isVisible && this.stale.delete(current)) {
      void Promise.resolve(current.refresh()).then(answered => {
        if (!answered) {
          this.stale.add(current);
          setTimeout(() => this.draw(), RETRY_MS);
        }
      });
    }
    for (const section of this.sections) {
      const count = section.count();
      section.title.label = count ? `${section.label} (${count})` : section.label;
    }
  }
}
