/** "What would happen if": a tool or permission and a command or pattern, answered with the rule that decides. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { errorMessage, visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import { Badge, Form, Status, TextField } from '../formControls';
import type { Action, TestReply } from './messages';

const verdict = (action: Action): string =>
  ({
    allow: trans.__('It would be allowed.'),
    ask: trans.__('It would need your approval.'),
    deny: trans.__('It would be denied.')
  })[action] ?? action;

/** What the test reports in its line. */
function statusText({ verdict: action, rows, note = '' }: TestReply): string {
  return [verdict(action), rows.length ? '' : trans.__('No permission is needed.'), note].filter(Boolean).join(' ');
}

/**
 * The form, and the answer below it.
 *
 * @param list - The id of the list of known permissions and tools.
 * @param test - Has the kernel try it.
 */
export function RuleTest({ list, test }: { list: string; test(name: string, text: string): Promise<TestReply> }): ReactElement {
  const [reply, setReply] = React.useState<TestReply>();
  const [error, setError] = React.useState('');
  const run = (name: string, text: string): void =>
    void test(name, text).then(
      answer => {
        setReply(answer);
        setError('');
      },
      reason => {
        setReply(undefined);
        setError(errorMessage(reason));
      }
    );
  return (
    <>
      <Form className="oc-rules-test" submit={trans.__('Test')} onSubmit={({ name, text }) => run(name, text)}>
        <TextField label={trans.__('Tool or permission')} name="name" list={list} defaultValue="bash" />
        <TextField label={trans.__('Command, pattern or JSON arguments')} name="text" placeholder="git push" />
      </Form>
      <Status>{reply ? statusText(reply) : error}</Status>
      <ul className="oc-rules-decided">
        {reply?.rows.map(({ action, permission, pattern, rule }, index) => (
          <li key={index}>
            <Badge action={action}>{action}</Badge> {visibleLine(`${permission} ${pattern}`)}
            <span className="oc-rules-origin">
              {trans.__('decided by: %1', visibleLine(`${rule.permission} ${rule.pattern} ${rule.action}${rule.origin ? ` (${rule.origin})` : ''}`))}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
