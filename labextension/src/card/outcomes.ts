/** The states and outcomes of calls, for the tools that collect texts for translation: `outcomeWord` looks up the kernel's word. */

import { trans } from './i18n';

/** Each in the language of the page. */
export function outcomes(): string[] {
  return [
    trans.__('pending'),
    trans.__('running'),
    trans.__('waiting'),
    trans.__('completed'),
    trans.__('failed'),
    trans.__('denied by a rule'),
    trans.__('denied by you'),
    trans.__('denied by policy'),
    trans.__('refused by a hook'),
    trans.__('dismissed by you'),
    trans.__('unanswered'),
    trans.__('stopped'),
    trans.__('timed out'),
    trans.__('invalid arguments'),
    trans.__('cancelled'),
    trans.__('dry run'),
    trans.__('ended')
  ];
}
