/** JupyterLab's form for the arguments of a tool, with text boxes and choices that have a name of their own. */

import { FormComponent, ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import { createElement, useEffect, useRef } from 'react';
import type { ChangeEvent, ReactElement } from 'react';
import { trans } from '../../card/i18n';
import type { ErrorSchema, FormSchema } from './formSchema';

type FormProps = Parameters<typeof FormComponent>[0];

/** What the form gives to a box; `label` is its name. */
interface BoxProps {
  id: string;
  label: string;
  value?: unknown;
  required?: boolean;
  schema: FormSchema;
  rawErrors?: string[];
  onChange(value: unknown): void;
}

/** JupyterLab's label stands beside the box without belonging to it. */
const named = ({ id, label, required, schema, rawErrors }: BoxProps): Record<string, unknown> => ({
  id,
  className: 'form-control',
  title: schema.description,
  'aria-label': label,
  'aria-required': required,
  'aria-invalid': Boolean(rawErrors?.length),
  'aria-describedby': rawErrors?.length ? `${id}__error` : undefined
});

function TextBox(props: BoxProps): ReactElement {
  const { value, required, schema, onChange } = props;
  const box = useRef<HTMLTextAreaElement>(null);
  // an item that was just added
  useEffect(() => {
    if (document.activeElement?.matches('.jp-ArrayOperationsButton')) {
      box.current?.focus();
    }
  }, []);
  const text = typeof value === 'string' ? value : '';
  const area = createElement('textarea', {
    ...named(props),
    ref: box,
    rows: Math.min(12, text.split('\n').length),
    inputMode: schema.format === 'number' ? 'decimal' : undefined,
    spellCheck: false,
    value: text,
    onChange: (event: ChangeEvent<HTMLTextAreaElement>) => onChange(event.target.value || undefined)
  });
  if (!required || schema.format || text) {
    return area;
  }
  const toggle = (event: ChangeEvent<HTMLInputElement>): void => onChange(event.target.checked ? '' : undefined);
  const check = createElement('input', { type: 'checkbox', checked: value === '', onChange: toggle });
  return createElement('div', {}, area, createElement('label', {}, check, trans.__('leave it empty')));
}

function ChoiceBox(props: BoxProps): ReactElement {
  const { value, schema, onChange } = props;
  const choices = schema.enum ?? [];
  const options = choices.map((choice, at) => createElement('option', { key: at, value: at }, typeof choice === 'string' ? choice || '""' : JSON.stringify(choice)));
  const change = (event: ChangeEvent<HTMLSelectElement>): void => onChange(event.target.value === '' ? undefined : choices[Number(event.target.value)]);
  return createElement('select', { ...named(props), value: value === undefined ? '' : choices.indexOf(value), onChange: change }, createElement('option', { value: '' }), options);
}

const widgets = { TextWidget: TextBox, SelectWidget: ChoiceBox } as unknown as FormProps['widgets'];

/** The kernel validates; the schema has nothing that depends on what was typed. */
const validator: FormProps['validator'] = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  toErrorList: () => [],
  isValid: () => true,
  rawValidation: () => ({})
};

export class ArgumentsForm extends ReactWidget {
  content: object = {};
  private errors: ErrorSchema = {};

  constructor(private readonly schema: FormSchema) {
    super();
    this.addClass('oc-tool-form');
  }

  /** Shows errors beside their fields, in place of those shown before, and focuses the first field that has one. */
  showErrors(errors: ErrorSchema): void {
    this.errors = errors;
    this.onUpdateRequest(Widget.Msg.UpdateRequest);
    void this.renderPromise?.then(() => this.node.querySelector<HTMLElement>('[aria-invalid=true]')?.focus());
  }

  protected render(): ReactElement {
    return createElement(FormComponent, {
      schema: this.schema as FormProps['schema'],
      formData: this.content as FormProps['formData'],
      extraErrors: this.errors as FormProps['extraErrors'],
      widgets,
      validator,
      noHtml5Validate: true,
      noValidate: true,
      showErrorList: false,
      showModifiedFromDefault: false,
      compact: true,
      buttonStyle: 'text',
      onChange: ({ formData }) => (this.content = (formData ?? {}) as object)
    });
  }
}
