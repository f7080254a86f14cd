/** A notebook that was read: its cells, each with its source and its outputs. */

import { trans } from '../i18n';
import { drawOutput } from '../ansi';
import { codeNodes } from '../syntaxColors';
import { el, scrollBox } from '../dom';
import { visible, visibleLine } from '../format';
import type { CardPart } from '../types';

/** Lines of a source and of outputs that are shown at first. */
export const SOURCE_LINES = 15;
export const OUTPUT_LINES = 8;

interface Drawn {
  index: number;
  id?: string;
  type: string;
  executed?: number;
  source: string;
  output: string;
}

interface DrawnCells {
  cells: Drawn[];
  language: string;
  words: string;
}

/** The cells of `part` with their text, which stands in its output. */
export function cellsOf({ state, ui }: CardPart): DrawnCells | undefined {
  if (!ui.cells) {
    return undefined;
  }
  const { cells, total, language, notes } = ui.cells;
  const lines = (state.output ?? '').split('\n');
  const drawn = cells
    .filter(({ line }) => line < lines.length)
    .map(({ index, id, type, executed, line, source, output }) => ({
      index,
      id,
      type,
      executed,
      source: lines.slice(line, line + source).join('\n'),
      // a line of its own says where outputs begin
      output: lines.slice(line + source + 1, line + source + 1 + output).join('\n')
    }));
  const [first, last] = [cells[0]?.index, cells[cells.length - 1]?.index];
  const which =
    cells.length >= total
      ? trans._n('%1 cell', '%1 cells', total)
      : first === last
        ? trans.__('cell %1 of %2', first, total)
        : trans.__('cells %1 to %2 of %3', first, last, total);
  return { cells: drawn, language, words: [which, ...notes.map(visibleLine)].join(' · ') };
}

/** Draws `shown` into `host`, replacing what is there. */
export function drawCells(host: HTMLElement, { cells, language, words }: DrawnCells): void {
  const box = el('div', 'oc-cells');
  scrollBox(box, trans.__('Cells of the notebook'));
  box.append(...cells.map(cell => drawCell(cell, language)));
  host.replaceChildren(box, el('div', 'oc-why oc-caption', words));
}

function drawCell({ index, id, type, executed, source, output }: Drawn, language: string): HTMLElement {
  const node = el('div', 'oc-nbcell');
  const prompt = el('div', 'oc-prompt');
  const name = el('b', '', String(index));
  name.title = id ? trans.__('cell %1, id %2', index, visibleLine(id)) : trans.__('cell %1', index);
  const code = type === 'code';
  prompt.append(name, el('span', '', code ? `[${executed ?? ' '}]` : visibleLine(type)));
  const body = el('div', 'oc-nbbody');
  const shown = visible(source);
  body.append(cut('oc-source', shown, SOURCE_LINES, (pre, text) => pre.replaceChildren(...(code ? codeNodes(text, language) : [text]))));
  if (output) {
    body.append(cut('oc-nbout', output, OUTPUT_LINES, drawOutput));
  }
  node.append(prompt, body);
  return node;
}

/** A block with the first `most` lines of `text`, and a button that shows the others. */
function cut(className: string, text: string, most: number, draw: (pre: HTMLElement, text: string) => void): HTMLElement {
  const block = el('div', className);
  const pre = el('pre');
  const lines = text.split('\n');
  const more = lines.length - most;
  block.append(pre);
  // one line more takes the room of the button
  draw(pre, more > 1 ? lines.slice(0, most).join('\n') : text);
  if (more > 1) {
    const button = el('button', 'oc-link oc-more', trans._n('… %1 more line', '… %1 more lines', more));
    button.type = 'button';
    button.addEventListener('click', () => {
      draw(pre, text);
      button.remove();
      pre.tabIndex = -1;
      pre.focus({ preventScroll: true });
    });
    block.append(button);
  }
  return block;
}
