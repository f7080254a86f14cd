/** The words of a run's head; `card/wording.ts` has those of calls. */

import { trans } from '../card/i18n';
import { clock, duration } from '../card/format';
import { DENIED, outcomeWord, waitingSince, waitingWords } from '../card/wording';
import type { StateWords } from '../card/wording';
import type { RunHead, RunPart } from './types';

/** `950 tokens`, `12.3k tokens`, `1.2M tokens`. */
export function tokens(count: number): string {
  if (count < 1_000) {
    return trans._n('%1 token', '%1 tokens', count);
  }
  if (count < 999_500) {
    return trans.__('%1k tokens', (count / 1000).toFixed(count < 99_950 ? 1 : 0));
  }
  return trans.__('%1M tokens', (count / 1e6).toFixed(1));
}

/** `$0.0012`, `$1.20`; nothing if not known, or nothing was charged. */
export function dollars(cost: number | undefined): string {
  return cost ? `$${cost.toFixed(cost < 0.1 ? 4 : 2)}` : '';
}

/** Whether the run goes on. */
export function isRunning({ status }: RunHead): boolean {
  return status === 'waiting' || status === 'working' || status === 'retrying' || status === 'compacting';
}

/** Since when a call of the run waits for a person; nothing if none does. */
export function pendingSince(run: RunPart): number | undefined {
  if (!isRunning(run)) {
    return undefined;
  }
  const since = run.items.map(item => (item.kind === 'call' ? waitingSince(item.part) : undefined)).filter(at => at !== undefined);
  return since.length ? Math.min(...since) : undefined;
}

/** The state of a run in words. */
export function runWords(run: RunPart): StateWords {
  if (pendingSince(run) !== undefined) {
    return waitingWords(...run.items.flatMap(item => (item.kind === 'call' ? item.part : [])));
  }
  switch (run.status) {
    case 'done':
      return { mark: '✓', word: trans.__('done'), tone: 'ok' };
    case 'rejected':
      return { mark: DENIED, word: trans.__('denied'), tone: 'off' };
    case 'failed':
      return { mark: '✗', word: trans.__('failed'), tone: 'err' };
    case 'stopped':
      return { mark: '■', word: outcomeWord(run.outcome ?? 'stopped'), tone: 'off' };
    case 'retrying':
      return { mark: '◐', word: trans.__('retrying'), tone: 'ask' };
    case 'compacting':
      return { mark: '◐', word: trans.__('summarising'), tone: 'run' };
    default:
      return { mark: '◐', word: trans.__('working'), tone: 'run' };
  }
}

/** What stands beside the state: steps, tokens, cost, and the time at `now` (milliseconds since 1970). */
export function headWords(run: RunPart, now: number): string {
  const { step, started, ended, waited = 0 } = run;
  const since = pendingSince(run);
  const words = [
    step ? trans._n('%1 step', '%1 steps', step) : '',
    run.tokens ? tokens(run.tokens) : '',
    dollars(run.cost),
    ended !== undefined ? duration(ended - started - waited) : isRunning(run) && since === undefined ? clock(now - started - waited) : '',
    since !== undefined ? trans.__('waiting %1', clock(now - since)) : waited >= 500 && !isRunning(run) ? trans.__('waited %1', duration(waited)) : ''
  ];
  return words.filter(Boolean).join(' · ');
}

/** Why the model is asked again, and when: `asking again in 8 s: rate limited`. */
export function retryWords({ retry, status }: RunHead, now: number): string {
  if (!retry || status !== 'retrying') {
    return '';
  }
  const left = Math.ceil((retry.next - now) / 1000);
  const attempt = retry.attempt + 1;
  return left > 0
    ? trans.__('Retrying in %1 s (attempt %2): %3', left, attempt, retry.message)
    : trans.__('Retrying now (attempt %1): %2', attempt, retry.message);
}
