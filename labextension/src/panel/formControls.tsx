/** What the panel's sections are built of: buttons, choices, fields with a label, forms, lines that report. */

import * as React from 'react';
import type { ComponentProps, ReactElement, ReactNode, RefObject } from 'react';

import { hasFocus } from '../card/dom';
import { visibleLine } from '../card/format';

/** A value to choose, with its text where that is another. */
export type Choice = string | readonly [value: string, label: string];

/** A button of the panel. */
export function Button(props: ComponentProps<'button'>): ReactElement {
  return <button type="button" className="oc-panel-button" {...props} />;
}

/** A list to choose one value from; `label` is shown above it, or a screen reader's alone. */
export function Select(props: {
  label: string;
  hideLabel?: boolean;
  name?: string;
  value?: string;
  choices: readonly Choice[];
  onChange?(value: string): void;
}): ReactElement {
  const { label, hideLabel, choices, onChange, ...rest } = props;
  return labelled(
    label,
    hideLabel,
    // else the label would be read with all that there is to choose
    <select className="oc-panel-select" aria-label={label} {...rest} onChange={event => onChange?.(event.target.value)}>
      {choices.map(choice => {
        const [value, text] = typeof choice === 'string' ? [choice, choice] : choice;
        return (
          <option key={value} value={value}>
            {visibleLine(text)}
          </option>
        );
      })}
    </select>
  );
}

/** A field for one line of text. */
export function TextField({ label, hideLabel, ...rest }: { label: string; hideLabel?: boolean } & ComponentProps<'input'>): ReactElement {
  return labelled(label, hideLabel, <input className="oc-panel-input" aria-label={label} spellCheck={false} {...rest} />);
}

function labelled(label: string, hidden: boolean | undefined, field: ReactElement): ReactElement {
  return hidden ? (
    field
  ) : (
    <label className="oc-panel-label">
      <span>{label}</span>
      {field}
    </label>
  );
}

/** Fields with a button that submits them, by their names. */
export function Form(props: {
  className: string;
  submit: string;
  onSubmit(values: Record<string, string>, form: HTMLFormElement): void;
  children: ReactNode;
}): ReactElement {
  const submit = (event: React.FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    props.onSubmit(Object.fromEntries(new FormData(form)) as Record<string, string>, form);
  };
  return (
    <form className={props.className} onSubmit={submit}>
      {props.children}
      <Button type="submit">{props.submit}</Button>
    </form>
  );
}

/** A line that reports what happened, to a screen reader too. */
export function Status({ children, className = 'oc-panel-said' }: { children: string; className?: string }): ReactElement {
  return (
    <p role="status" className={className} hidden={!children}>
      {children}
    </p>
  );
}

/** Whether something may be done by rules, in a word; its colour only repeats the word. */
export function Badge({ action, title, children }: { action: string; title?: string; children: string }): ReactElement {
  return (
    <span className="oc-badge" data-action={action} title={title}>
      {children}
    </span>
  );
}

/** Focuses `next()` where what had the focus in `box` went away or cannot be used any more. */
export function useFocusFallback(box: RefObject<HTMLElement>, next: () => void): void {
  const focused = box.current !== null && hasFocus(box.current);
  React.useLayoutEffect(() => {
    if (focused && box.current && (!hasFocus(box.current) || document.activeElement?.matches(':disabled'))) {
      next();
    }
  });
}
