/** The words of a call's card: its state, outcome, times and decisions; the twin of `opencode_jupyter/jupyter/cards/wording.py`. */

import { clock, duration, visibleLine } from './format';
import { trans } from './i18n';
import type { CardDecision, CardPart, CardRule } from './types';

/** `edit *: allow from opencode.json`, cut where the code-coloured part ends. */
export function ruleWords(rule: CardRule): { code: string; from: string } {
  return {
    code: visibleLine(`${rule.permission} ${rule.pattern}: ${rule.action}`),
    from: rule.origin ? trans.__(' from %1', visibleLine(rule.origin)) : ''
  };
}

/** Ways in which the answer of the person at the notebook comes. */
const PERSON = ['you', 'user', 'card', 'control', 'tap', 'widget', 'prompt', 'person', ''];

/** A decision in words: `allowed once by you`, `rule edit *: allow from opencode.json`. */
export function decisionWords(decision: CardDecision): string {
  const by = PERSON.includes(decision.by) ? trans.__('you') : visibleLine(decision.by);
  if (decision.revised) {
    return trans.__('arguments changed by %1', by);
  }
  const note = decision.note ? ` (${visibleLine(decision.note).replace(/\.$/, '')})` : '';
  const word = (decision.message ? `: “${visibleLine(decision.message)}”` : '') + note;
  const denied = decision.action === 'deny';
  return sentence(decision, by, denied) + word;
}

function sentence({ rule, reply, by: way, permission }: CardDecision, by: string, denied: boolean): string {
  if (rule && !reply) {
    const { code, from } = ruleWords(rule);
    return trans.__('rule %1', code) + from;
  }
  if (way === 'policy') {
    return denied
      ? trans.__('denied by policy (nobody could approve it)')
      : trans.__('allowed by policy (nobody could approve it)');
  }
  if (denied) {
    return permission === 'trust' ? trans.__('not trusted by %1', by) : trans.__('denied by %1', by);
  }
  if (permission === 'trust') {
    return trans.__('trusted by %1, until it changes', by); // whatever was answered: exactly what was shown is remembered
  }
  if (permission === 'sandbox') {
    return trans.__('allowed despite the sandbox by %1', by);
  }
  return reply === 'always'
    ? trans.__('allowed for this session by %1', by)
    : reply === 'once'
      ? trans.__('allowed once by %1', by)
      : trans.__('allowed by %1', by);
}

/** Where a decision was about several things (the commands of a line): each with the rule that decided it. */
export function patternWords(decisions: CardDecision[]): string[] {
  const lines = decisions.flatMap(({ patterns, rules }) =>
    (rules ?? []).map((rule, index) => {
      const { code, from } = ruleWords(rule);
      return `${visibleLine(patterns[index] ?? '')}  —  ${trans.__('rule %1', code)}${from}`;
    })
  );
  return [...new Set(lines)];
}

/** What of a call's output a person is shown: `ui.shown` leaves out what only the model needs. */
export function shownOutput(part: CardPart): string {
  const { output = '' } = part.state;
  const { shown } = part.ui;
  return shown ? output.split('\n').slice(shown[0], shown[1]).join('\n') : output;
}

/** The state's word and the mark that goes with it, so that it is told by more than its colour. */
export interface StateWords {
  word: string;
  mark: string;
  /** Which accent it has. */
  tone: 'ask' | 'run' | 'ok' | 'err' | 'off';
}

/** Since when `part`, or a call inside it, waits for a person (milliseconds since 1970); nothing if none does. */
export function waitingSince(part: CardPart): number | undefined {
  if (!isLive(part)) {
    return undefined;
  }
  const { ask, question, children = [] } = part.ui;
  const since = [ask?.asked, question?.asked, ...children.map(waitingSince)].filter(at => at !== undefined);
  return since.length ? Math.min(...since) : undefined;
}

/** The state of something that waits for a person: for approval, unless all that is open is a question. */
export function waitingWords(...parts: CardPart[]): StateWords {
  const asks = ({ ui }: CardPart): boolean => !!ui.ask || !!ui.children?.some(asks);
  return { word: parts.some(asks) ? trans.__('waiting for approval') : trans.__('waiting for an answer'), mark: '?', tone: 'ask' };
}

/** The kernel's word for the state of a call or for how it ended, as a person reads it; `outcomes.ts` has them for translators. */
export function outcomeWord(outcome: string): string {
  return outcome === 'interrupted' ? trans.__('interrupted by you') : trans.__(visibleLine(outcome));
}

/** The mark of a call that a person denied or dismissed. */
export const DENIED = '⊘';

/** What tells how a call ended besides its word. What a person wanted is no failure. */
export function outcomeLook(outcome: string): Pick<StateWords, 'mark' | 'tone'> {
  return outcome === 'completed'
    ? { mark: '✓', tone: 'ok' }
    : /^(cancelled|ended|stopped|interrupted)$/.test(outcome)
      ? { mark: '■', tone: 'off' }
      : /^(denied by you|dismissed)/.test(outcome)
        ? { mark: DENIED, tone: 'off' }
        : { mark: '✗', tone: 'err' };
}

/** The state of `part` in words. */
export function stateWords(part: CardPart): StateWords {
  const { state: { status }, ui } = part;
  const { outcome, waitsFor } = ui;
  if (waitingSince(part) !== undefined) {
    return waitingWords(part);
  }
  if (isLive(part)) {
    return status === 'running'
      ? { word: waitsFor ? trans.__('waiting for another change of %1', visibleLine(waitsFor)) : trans.__('running'), mark: '◐', tone: 'run' }
      : { word: trans.__('pending'), mark: '○', tone: 'run' };
  }
  const failed = status === 'completed' && (outcome ?? status) === status ? failure(part) : '';
  const ended = outcome || (status === 'error' ? 'failed' : status);
  return { word: failed || outcomeWord(ended), ...outcomeLook(failed ? '' : ended) };
}

/** What failed in a call that completed: a command's exit code or signal, or calls of a batch; empty if nothing did. */
function failure({ tool, state, ui }: CardPart): string {
  const { exit, signal, totalCalls, failed, unsuccessful = failed } = state.metadata ?? {};
  // cards saved before `ui.failure` existed have the numbers alone, which are a failure of these tools only
  const fails = (name: string): boolean => (ui.failure === undefined ? tool === name : ui.failure !== '');
  if (fails('bash') && typeof exit === 'number' && exit) {
    return trans.__('exit code %1', exit);
  }
  if (fails('bash') && typeof signal === 'string') {
    return trans.__('ended by %1', signal);
  }
  if (fails('batch') && typeof unsuccessful === 'number' && typeof totalCalls === 'number' && unsuccessful) {
    return trans.__('%1 of %2 failed', unsuccessful, totalCalls);
  }
  return ui.failure ?? '';
}

/** Whether the call goes on. */
export function isLive(part: CardPart): boolean {
  return !part.ui.outcome && (part.state.status === 'pending' || part.state.status === 'running');
}

/** The time beside the state, at `now` (milliseconds since 1970): running apart from waiting. */
export function timeWords(part: CardPart, now: number): string {
  const { time } = part.state;
  const { waited } = part.ui;
  if (isLive(part)) {
    const since = waitingSince(part);
    if (since !== undefined) {
      return trans.__('waiting %1', clock(now - since));
    }
    return time ? clock(now - time.start - waited) : '';
  }
  const spent = waited >= 500 ? trans.__('waited %1', duration(waited)) : '';
  if (!time || time.end === undefined) {
    return spent;
  }
  const ran = /^(denied|refused)/.test(part.ui.outcome ?? '') ? '' : duration(time.end - time.start - waited);
  return [ran, spent].filter(Boolean).join(' · ');
}
