/** What a viewer says when it gets no rows: why, where the file is, and how else it can be read. */

import { copyButton } from '../card/copy';
import { button, el, setText, show } from '../card/dom';
import { visibleLine } from '../card/format';
import type { CardSpill } from '../card/types';
import { trans } from '../card/i18n';

export class FailureNotice {
  readonly node = el('div', 'oc-trouble');
  private readonly reason = el('p');

  constructor({ path, line }: CardSpill, retry: () => void) {
    const how = el('p', '', trans.__('Start the notebook’s kernel, run %load_ext opencode_jupyter, and '));
    how.append(button(trans.__('try again'), '', 'oc-link', retry));
    how.append(trans.__('. The file is on the kernel’s machine:'));
    const quoted = /\s/.test(path) ? JSON.stringify(path) : path;
    const other = el('p', '', trans.__('You can also read it in a cell: '));
    other.append(el('code', '', visibleLine(`%tool read ${quoted} offset=${line}`)));
    const where = el('code', '', visibleLine(path));
    const name = trans.__('Copy path');
    const copy = copyButton(name, name, 'oc-button', () => path, () => getSelection()?.selectAllChildren(where));
    const file = el('p');
    file.append(where, ' ', copy);
    this.node.setAttribute('role', 'alert');
    this.node.append(this.reason, how, file, other);
    show(this.node, false);
  }

  /** Says why there is nothing. */
  show(reason: string): void {
    setText(this.reason, reason);
    show(this.node, true);
  }

  /** There is something again. */
  clear(): void {
    show(this.node, false);
  }
}
