/** A to-do list: each task with the mark of its state. */

import { el } from '../dom';
import { visibleLine } from '../format';
import type { CardTask } from '../token';

/** Mark and words of each state, so that it is told by more than its colour. */
export const MARKS: Record<CardTask['status'], [mark: string, words: string]> = {
  pending: ['☐', 'to do'],
  in_progress: ['◐', 'in progress'],
  completed: ['☑', 'done'],
  cancelled: ['✗', 'cancelled']
};

/** Draws `tasks` into `host`, replacing what is there. */
export function drawTasks(host: HTMLElement, tasks: CardTask[]): void {
  const list = el('ul', 'oc-tasks');
  for (const { content, status, priority } of tasks) {
    const item = el('li');
    const [mark, words] = MARKS[status] ?? MARKS.pending;
    item.dataset.status = status;
    const sign = el('span', 'oc-taskmark', mark);
    sign.setAttribute('role', 'img');
    sign.setAttribute('aria-label', words);
    item.append(sign, ' ', el('span', 'oc-task', visibleLine(content)));
    if (priority && priority !== 'medium') {
      const chip = el('span', 'oc-chip', visibleLine(priority));
      chip.dataset.priority = priority;
      item.append(' ', chip);
    }
    list.append(item);
  }
  host.replaceChildren(tasks.length ? list : el('div', 'oc-why', 'no tasks'));
}
