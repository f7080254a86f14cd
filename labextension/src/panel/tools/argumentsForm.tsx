/** JupyterLab's form for the arguments of a tool, with text boxes and choices that have a name of their own. */

import { FormComponent } from '@jupyterlab/ui-components';
import * as React from 'react';
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
  const box = React.useRef<HTMLTextAreaElement>(null);
  // an item that was just added
  React.useEffect(() => {
    if (document.activeElement?.matches('.jp-ArrayOperationsButton')) {
      box.current?.focus();
    }
  }, []);
  const text = typeof value === 'string' ? value : '';
  return (
    <div>
      <textarea
        {...named(props)}
        ref={box}
        rows={Math.min(12, text.split('\n').length)}
        inputMode={schema.format === 'number' ? 'decimal' : undefined}
        spellCheck={false}
        value={text}
        onChange={event => onChange(event.target.value || undefined)}
      />
      {required && !schema.format && !text && (
        <label>
          <input type="checkbox" checked={value === ''} onChange={event => onChange(event.target.checked ? '' : undefined)} />
          {trans.__('an empty text')}
        </label>
      )}
    </div>
  );
}

function ChoiceBox(props: BoxProps): ReactElement {
  const { value, schema, onChange } = props;
  const choices = schema.enum ?? [];
  const change = (event: ChangeEvent<HTMLSelectElement>): void => onChange(event.target.value === '' ? undefined : choices[Number(event.target.value)]);
  return (
    <select {...named(props)} value={value === undefined ? '' : choices.indexOf(value)} onChange={change}>
      <option value="" />
      {choices.map((choice, index) => (
        <option key={index} value={index}>
          {typeof choice === 'string' ? choice || '""' : JSON.stringify(choice)}
        </option>
      ))}
    </select>
  );
}

const widgets = { TextWidget: TextBox, SelectWidget: ChoiceBox } as unknown as FormProps['widgets'];

/** The kernel validates; the schema has nothing that depends on what was typed. */
const validator: FormProps['validator'] = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  toErrorList: () => [],
  isValid: () => true,
  rawValidation: () => ({})
};

/** The form; the first field that has one of `errors` gets the focus when they are new. */
export function ArgumentsForm(props: { schema: FormSchema; content: object; errors: ErrorSchema; onChange(content: object): void }): ReactElement {
  const box = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    // the form takes over new errors once it was drawn with them
    const timer = setTimeout(() => box.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus());
    return () => clearTimeout(timer);
  }, [props.errors]);
  return (
    <div className="oc-tool-form" ref={box}>
      <FormComponent
        schema={props.schema as FormProps['schema']}
        formData={props.content as FormProps['formData']}
        extraErrors={props.errors as FormProps['extraErrors']}
        widgets={widgets}
        validator={validator}
        noHtml5Validate
        noValidate
        showErrorList={false}
        showModifiedFromDefault={false}
        compact
        buttonStyle="text"
        onChange={({ formData }) => props.onChange((formData ?? {}) as object)}
      />
    </div>
  );
}
