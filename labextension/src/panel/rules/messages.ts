/** What a kernel replies about its rules. */

/** What a rule decides. */
export type Action = 'allow' | 'ask' | 'deny';

export interface RuleRow {
  n: number;
  permission: string;
  pattern: string;
  action: Action;
  origin: string;
  /** `session` and `project` can be taken back; `mode` comes and goes with the mode. */
  kind: 'session' | 'project' | 'mode' | '';
  /** It decides before other rules, but undoes none that denies. */
  approval: boolean;
}

/** Answer to `rules`. */
export interface RulesReply {
  rules: RuleRow[];
  mode: string;
  modes: Record<string, string>;
  agent: string;
  agents: string[];
  permissions: string[];
}

/** One thing that was tried out, and the rule that decides it. */
export interface TestRow {
  permission: string;
  pattern: string;
  action: Action;
  rule: { permission: string; pattern: string; action: Action; origin: string };
}

/** Answer to `rule_test`. */
export interface TestReply {
  how: 'call' | 'pattern';
  verdict: Action;
  rows: TestRow[];
  note?: string;
}
