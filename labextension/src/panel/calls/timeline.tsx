/** The bars: one row for each call, its name over its bar, of which only those in view are in the page. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { duration, visibleLine } from '../../card/format';
import { outcomeLook, outcomeWord } from '../../card/wording';
import type { StateWords } from '../../card/wording';
import { trans } from '../../card/i18n';
import type { Axis } from './axis';
import type { CallRow, NestedCall } from './callLog';
import { isOpen, outcomeOf, waitingSince, workedMs } from './callLog';

/** Height of a row in pixels; the style sheet has the same. */
const ROW_HEIGHT = 40;
/** Rows drawn beyond what is in view. */
const MARGIN = 8;
/** Height of the list before it is measured. */
const UNMEASURED = 400;

/** The tone of a call's state, as its card has it. */
export function toneOf(call: CallRow): StateWords['tone'] {
  return isOpen(call) ? (waitingSince(call) === undefined ? 'run' : 'ask') : outcomeLook(outcomeOf(call)).tone;
}

/** A call in a sentence, for a screen reader and as a tooltip. */
export function describeCall(call: CallRow, now: number): string {
  const waited = call.waited ? trans.__(', waited %1', duration(call.waited)) : '';
  const at = new Date(call.start).toLocaleTimeString();
  return trans.__('%1 %2: %3, %4%5, started %6', visibleLine(call.tool), visibleLine(call.title), outcomeWord(outcomeOf(call)), duration(workedMs(call, now)), waited, at);
}

interface TimelineProps {
  calls: readonly NestedCall[];
  axis: Axis;
  now: number;
  /** A call was chosen. */
  onPress(call: CallRow): void;
}

/** The list of bars. Arrows, Home and End go from row to row. */
export function Timeline(props: TimelineProps): ReactElement {
  const { calls } = props;
  const box = React.useRef<HTMLDivElement>(null);
  const [top, setTop] = React.useState(0);
  const [focused, setFocused] = React.useState('');
  React.useLayoutEffect(() => {
    const rows = [...(box.current?.querySelectorAll<HTMLElement>('.oc-time-row') ?? [])];
    rows.find(({ dataset }) => dataset.id === focused)?.focus({ preventScroll: true });
  }, [focused]);
  const height = box.current?.clientHeight || UNMEASURED;
  const first = Math.floor(top / ROW_HEIGHT) - MARGIN;
  const last = Math.ceil((top + height) / ROW_HEIGHT) + MARGIN;

  const move = (event: React.KeyboardEvent<HTMLDivElement>): void => {
    const current = calls.findIndex(({ call }) => call.id === focused);
    const end = calls.length - 1;
    const to = { ArrowDown: current + 1, ArrowUp: Math.max(0, current - 1), Home: 0, End: end }[event.key];
    if (to === undefined || end < 0) {
      return;
    }
    event.preventDefault();
    const list = event.currentTarget;
    const target = Math.min(end, to);
    const rowTop = target * ROW_HEIGHT;
    if (rowTop < list.scrollTop || rowTop + ROW_HEIGHT > list.scrollTop + list.clientHeight) {
      list.scrollTop = Math.max(0, rowTop - list.clientHeight / 2);
      setTop(list.scrollTop);
    }
    setFocused(calls[target].call.id);
  };

  return (
    <div
      className="oc-time-list"
      role="group"
      tabIndex={0}
      aria-label={trans.__('Calls on a time axis')}
      ref={box}
      onScroll={event => setTop(event.currentTarget.scrollTop)}
      onKeyDown={move}
      onBlur={() => setFocused('')}
    >
      <div className="oc-time-inner" style={{ height: calls.length * ROW_HEIGHT }}>
        {calls.map(
          (nested, index) =>
            // the row in focus stays, or the keyboard would lose its place
            ((index >= first && index < last) || nested.call.id === focused) && (
              <TimelineRow key={nested.call.id} {...props} nested={nested} index={index} onFocus={() => setFocused(nested.call.id)} />
            )
        )}
      </div>
    </div>
  );
}

function TimelineRow({ nested, index, axis, now, onPress, onFocus }: TimelineProps & { nested: NestedCall; index: number; onFocus(): void }): ReactElement {
  const { call, depth } = nested;
  const outcome = outcomeOf(call);
  const end = call.end ?? (isOpen(call) ? now : call.start);
  const bar = (className: string, from: number, to: number, key?: number): ReactElement => (
    <i key={key} className={className} style={{ left: `${axis.at(from) * 100}%`, width: `max(2px, ${(axis.at(to) - axis.at(from)) * 100}%)` }} />
  );
  return (
    // its name is what it shows; the sentence is read after it
    <button
      type="button"
      className="oc-time-row"
      style={{ top: index * ROW_HEIGHT }}
      data-id={call.id}
      data-tone={toneOf(call)}
      title={describeCall(call, now)}
      onClick={() => onPress(call)}
      onFocus={onFocus}
    >
      <span className="oc-time-name" style={{ paddingLeft: `${Math.min(depth, 6) * 0.8}em` }}>
        <b>{visibleLine(call.tool)}</b> {visibleLine(call.title)}
      </span>{' '}
      <span className="oc-time-state">{outcome === 'completed' ? duration(workedMs(call, now)) : outcomeWord(outcome)}</span>
      <span className="oc-time-track" aria-hidden="true">
        {bar('oc-time-bar', call.start, end)}
        {call.waits.map(([from, to], at) => bar('oc-time-wait', from, to ?? end, at))}
      </span>
    </button>
  );
}
