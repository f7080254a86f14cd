/** Which notebook's kernel a section is about: the one in front at first, then what the person chooses. */

import { el, setText, show } from '../card/dom';
import { trans } from '../card/i18n';
import type { KernelHub, OpenKernel, PanelRequest } from '../kernel/hub';
import { offer, select, statusLine, wordsOf } from './controls';

/** The list of notebooks with a kernel of ours, and the line that says why there is nothing to see. */
export class Chooser {
  readonly node = el('div', 'oc-panel-choose');
  private readonly select: HTMLSelectElement;
  private readonly trouble = statusLine('oc-panel-empty');
  private chosen = '';
  /** The id of the kernel whose answer is shown; "": none. */
  shown = '';

  constructor(
    private readonly hub: Pick<KernelHub, 'kernels' | 'current' | 'request'>,
    change: () => void
  ) {
    this.select = select(trans.__('Notebook'), () => {
      this.chosen = this.select.value;
      change();
    });
    this.node.append(this.select, this.trouble);
  }

  /** The kernel that is chosen; nothing where none has our extension. */
  kernel(): OpenKernel | undefined {
    const kernels = this.hub.kernels();
    const front = this.hub.current();
    if (!kernels.some(({ id }) => id === this.chosen)) {
      this.chosen = '';
    }
    const chosen = kernels.find(({ id }) => id === this.chosen) ?? front ?? kernels[0];
    const inOrder = front ? [front, ...kernels.filter(({ id }) => id !== front.id)] : kernels;
    offer(this.select, inOrder.map(({ id, name }) => [id, name] as const));
    this.select.value = chosen?.id ?? '';
    show(this.select, kernels.length > 1);
    return chosen;
  }

  /**
   * Requests what a section shows of the chosen kernel.
   *
   * @param clear - is called first where another kernel was shown before.
   * @returns false where the kernel did not answer.
   */
  async read<T>(request: () => PanelRequest, draw: (reply: T) => void, clear: () => void): Promise<boolean> {
    const kernel = this.kernel();
    if (this.shown !== (kernel?.id ?? '')) {
      this.shown = kernel?.id ?? '';
      clear();
    }
    if (!kernel) {
      this.report(trans.__('No open notebook has the tools loaded. Run %1 in one.', '%load_ext opencode_jupyter'));
      return true;
    }
    try {
      const reply = await this.hub.request<T>(kernel.id, request());
      if (kernel.id === this.shown) {
        this.report('');
        draw(reply);
      }
      return true;
    } catch (error) {
      this.report(wordsOf(error));
      return false;
    }
  }

  /** Says why there is nothing to see; "" where there is. */
  report(words: string): void {
    setText(this.trouble, words);
    show(this.trouble, words !== '');
  }
}
