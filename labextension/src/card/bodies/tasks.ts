/** A to-do list: each task with the mark of its state. */

import { trans } from '../i18n';
import { el, setRole } from '../dom';
import { visibleLine } from '../format';
import type { CardTask } from '../types';

/** Mark and words of a state, so that it is told by more than its colour. */
function markOf(status: CardTask['status']): [mark: string, words: string] {
  switch (status) {
    case 'in_progress':
      return ['◐', trans.__('in progress')];
    case 'completed':
      return ['☑', trans.__('done')];
    case 'cancelled':
      return ['✗', trans.__('cancelled')];
    default:
      return ['☐', trans.__('to do')];
  }
}

/** Draws `tasks` into `host`, replacing what is there. */
export function drawTasks(host: HTMLElement, tasks: CardTask[]): void {
  const list = el('ul', 'oc-tasks');
  for (const { content, status, priority } of tasks) {
    const item = el('li');
    const [mark, words] = markOf(status);
    item.dataset.status = status;
    const sign = el('span', 'oc-taskmark', mark);
    setRole(sign, 'img', words);
    item.append(sign, ' ', el('span', 'oc-task', visibleLine(content)));
    if (priority && priority !== 'medium') {
      const chip = el('span', 'oc-chip', visibleLine(priority));
      chip.dataset.priority = priority;
      item.append(' ', chip);
    }
    list.append(item);
  }
  host.replaceChildren(tasks.length ? list : el('div', 'oc-why', trans.__('no tasks')));
}
