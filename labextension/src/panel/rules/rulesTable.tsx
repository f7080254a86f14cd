/** The rules in the order in which they decide. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { visibleLine } from '../../card/format';
import { trans } from '../../card/i18n';
import { Badge, Button, useFocusFallback } from '../formControls';
import type { RuleRow } from './messages';

export function RulesTable({ rules, revoke }: { rules: readonly RuleRow[]; revoke(rule: RuleRow): void }): ReactElement {
  const body = React.useRef<HTMLTableSectionElement>(null);
  useFocusFallback(body, () => [...(body.current?.querySelectorAll('button') ?? [])].pop()?.focus());
  return (
    <table className="oc-rules-table">
      <thead>
        <tr>
          {[trans.__('No.'), trans.__('Rule'), trans.__('Action')].map(name => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody ref={body}>
        {rules.map(rule => (
          <tr key={`${rule.kind} ${rule.permission} ${rule.pattern} ${rule.action} ${rule.origin} ${rules.indexOf(rule)}`}>
            <td className="oc-rules-n">{rule.n}</td>
            <RuleCell rule={rule} revoke={revoke} />
            <td>
              <Badge action={rule.action}>{rule.action}</Badge>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function RuleCell({ rule, revoke }: { rule: RuleRow; revoke(rule: RuleRow): void }): ReactElement {
  const text = visibleLine(`${rule.permission} ${rule.pattern}`);
  // broken where a part ends rather than inside a word
  const parts = text.split(/(?<=[_/])/).flatMap((part, at) => (at ? [<wbr key={at} />, part] : [part]));
  return (
    <td className="oc-rules-rule">
      <code>{parts}</code>
      <span className="oc-rules-origin">{visibleLine(rule.origin)}</span>
      {rule.approval && <span className="oc-rules-origin">{trans.__('an approval: it does not override a rule that denies')}</span>}
      {(rule.kind === 'session' || rule.kind === 'project') && (
        <Button aria-label={trans.__('Revoke %1', `${text} ${rule.action}`)} onClick={() => revoke(rule)}>
          {trans.__('Revoke')}
        </Button>
      )}
    </td>
  );
}
