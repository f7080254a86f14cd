/** The words of a run's head; the twin of `opencode_jupyter/jupyter/agent/words.py`. */

import { clock, duration, type StateWords } from '../card/format';
import type { RunPart, RunHead } from './token';
import { waitingSince } from '../card/format';

/** `950 tokens`, `12.3k tokens`, `1.2M tokens`. */
export function tokens(count: number): string {
  if (count < 1_000) {
    return `${count} token${count === 1 ? '' : 's'}`;
  }
  if (count < 999_500) {
    return `${(count / 1000).toFixed(count < 99_950 ? 1 : 0)}k tokens`;
  }
  return `${(count / 1e6).toFixed(1)}M tokens`;
}

/** `$0.0012`, `$1.20`; nothing if not known, or nothing was charged. */
export function dollars(cost: number | undefined): string {
  return cost ? `$${cost.toFixed(cost < 0.1 ? 4 : 2)}` : '';
}

/** Whether the run goes on. */
export function working({ status }: RunHead): boolean {
  return status === 'waiting' || status === 'working' || status === 'retrying' || status === 'compacting';
}

/** Since when a call of the run waits for a person; nothing if none does. */
export function asksSince(run: RunPart): number | undefined {
  if (!working(run)) {
    return undefined;
  }
  const since = run.items.map(item => (item.kind === 'call' ? waitingSince(item.part) : undefined)).filter(at => at !== undefined);
  return since.length ? Math.min(...since) : undefined;
}

/** The state of a run in words. */
export function runWords(run: RunPart): StateWords {
  if (asksSince(run) !== undefined) {
    return { mark: '?', word: 'waiting for you', tone: 'ask' };
  }
  switch (run.status) {
    case 'done':
      return { mark: '✓', word: 'done', tone: 'ok' };
    case 'rejected':
      return { mark: '✗', word: 'refused', tone: 'err' };
    case 'failed':
      return { mark: '✗', word: 'failed', tone: 'err' };
    case 'stopped':
      return { mark: '■', word: run.outcome ?? 'stopped', tone: 'off' };
    case 'retrying':
      return { mark: '◐', word: 'asking again', tone: 'ask' };
    case 'compacting':
      return { mark: '◐', word: 'summarising', tone: 'run' };
    default:
      return { mark: '◐', word: 'working', tone: 'run' };
  }
}

/** What stands beside the state: steps, tokens, cost, and the time at `now` (milliseconds since 1970). */
export function headWords(run: RunPart, now: number): string {
  const { step, started, ended, waited = 0 } = run;
  const since = asksSince(run);
  const words = [
    step ? `${step} step${step === 1 ? '' : 's'}` : '',
    run.tokens ? tokens(run.tokens) : '',
    dollars(run.cost),
    ended !== undefined ? duration(ended - started - waited) : working(run) && since === undefined ? clock(now - started - waited) : '',
    since !== undefined ? `waiting ${clock(now - since)}` : waited >= 500 && !working(run) ? `waited ${clock(waited)}` : ''
  ];
  return words.filter(Boolean).join(' · ');
}

/** Why the model is asked again, and when: `asking again in 8 s: rate limited`. */
export function retryWords({ retry, status }: RunHead, now: number): string {
  if (!retry || status !== 'retrying') {
    return '';
  }
  const left = Math.ceil((retry.next - now) / 1000);
  return `Asking again ${left > 0 ? `in ${left} s` : 'now'} (try ${retry.attempt + 1}): ${retry.message}`;
}
