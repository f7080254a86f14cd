/** A block of code in a model's text: coloured, to be copied, and in a notebook to be put into a cell. */

import { codeNodes } from '../card/syntaxColors';
import { copyButton } from '../card/copy';
import { button, el, show } from '../card/dom';
import { trans } from '../card/i18n';
import { bridge } from '../kernel/messages';

/** What a cell that runs a block in one of these languages begins with; other blocks are no cells. */
const CELL_STARTS = new Map([
  ...['', 'python', 'python3', 'py', 'ipython', 'ipython3'].map(name => [name, ''] as const),
  ...['bash', 'sh', 'shell'].map(name => [name, '%%bash\n'] as const)
]);
const BUTTON = 'oc-button oc-small';

/** The block that shows `code`; `language` is what its fence names, or empty. */
export function codeBlock(code: string, language: string): HTMLElement {
  const pre = el('pre', 'oc-fence');
  pre.append(...codeNodes(code, language || 'text'));
  pre.tabIndex = 0;
  const block = el('div', 'oc-box');
  const tools = el('span', 'oc-copy');
  tools.append(copyButton(trans.__('Copy'), trans.__('Copy code'), BUTTON, () => code));
  block.append(pre, tools);
  const start = CELL_STARTS.get(language.toLowerCase());
  if (start !== undefined && bridge()?.insertCell) {
    const insert = button(trans.__('Insert as cell'), '', BUTTON, () => bridge()?.insertCell?.(block, start + code));
    insert.title = trans.__('Puts the code into a new cell below, without running it');
    tools.append(insert);
    // a card is drawn before it stands in its document, which may be a console
    const check = (): void => show(insert, bridge()?.canInsert?.(block) ?? false);
    block.addEventListener('pointerenter', check);
    block.addEventListener('focusin', check);
  }
  return block;
}
