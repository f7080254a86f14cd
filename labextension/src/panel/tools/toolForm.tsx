/** One tool: what it is, a form for its arguments, and the cell that is made of them. */

import * as React from 'react';
import type { ReactElement } from 'react';

import { errorMessage, visible } from '../../card/format';
import { trans } from '../../card/i18n';
import { toolLine } from '../../card/toolLine';
import type { OpenKernel } from '../../kernel/hub';
import { insertCell, takesCells } from '../../notebook/insertCell';
import { Button, Status } from '../formControls';
import type { PanelContext } from '../section';
import { ArgumentsForm } from './argumentsForm';
import { formSchema, groupProblems, parseArguments } from './formSchema';
import type { Problem, ToolField } from './formSchema';

/** Answer to `tool`. */
export interface ToolReply {
  name: string;
  fields: ToolField[];
  description: string;
}

/** Characters of the description that are shown unasked. */
const SHORT = 200;

function Description({ text }: { text: string }): ReactElement {
  return text.length <= SHORT ? (
    <p className="oc-tool-about">{text}</p>
  ) : (
    <details className="oc-tool-about">
      <summary>{trans.__('Description for a model')}</summary>
      <pre className="oc-tool-text">{text}</pre>
    </details>
  );
}

/**
 * The form of `tool`.
 *
 * @param getKernel - Gives the kernel that has the tool, while there is one.
 */
export function ToolForm({ context, tool, getKernel }: { context: PanelContext; tool: ToolReply; getKernel(): OpenKernel | undefined }): ReactElement {
  const { name, fields } = tool;
  const title = React.useRef<HTMLHeadingElement>(null);
  const content = React.useRef<object>({});
  const schema = React.useMemo(() => formSchema(fields), [fields]);
  const [status, setStatus] = React.useState('');
  const [errors, setErrors] = React.useState(groupProblems(fields, []).errors);
  React.useEffect(() => title.current?.focus(), []);

  /** Shows problems beside their fields; true if there are some. */
  const show = (problems: readonly Problem[]): boolean => {
    const { errors: ofFields, others } = groupProblems(fields, problems);
    const texts = others.map(({ path, message }) => (path.length ? `${path.join('.')}: ${message}` : message));
    setErrors(ofFields);
    setStatus(problems.length ? [...texts, trans.__('Nothing was inserted yet.')].join(' ') : '');
    return problems.length > 0;
  };

  /** Puts the call into a new cell; `run`: and runs it. */
  const insert = async (run: boolean): Promise<void> => {
    const problems: Problem[] = [];
    const input = parseArguments(fields, content.current, problems);
    if (show(problems)) {
      return;
    }
    const source = toolLine(name, input);
    const kernel = getKernel();
    if (source === undefined) {
      setStatus(trans.__('These arguments can’t be written as a line; call the tool from Python.'));
      return;
    }
    if (!kernel || !takesCells(kernel.document)) {
      setStatus(trans.__('Open a notebook first: there is none to insert the cell into.'));
      return;
    }
    try {
      const reply = await context.hub.request<{ errors: Problem[] }>(kernel.id, { what: 'tool_check', name, source, input });
      if (show(reply.errors)) {
        return;
      }
    } catch (error) {
      setStatus(errorMessage(error));
      return;
    }
    const { document } = kernel;
    if (takesCells(document)) {
      insertCell(context.app, document, document.content.activeCellIndex + 1, source, run);
      setStatus(run ? trans.__('Running in a new cell.') : trans.__('Inserted as a new cell.'));
    }
  };

  return (
    <>
      <h3 className="oc-tool-name" tabIndex={-1} ref={title}>
        {name}
      </h3>
      <Description text={visible(tool.description.trim())} />
      <ArgumentsForm schema={schema} content={content.current} errors={errors} onChange={changed => (content.current = changed)} />
      {!fields.length && <p className="oc-panel-empty">{trans.__('This tool takes no arguments.')}</p>}
      <div className="oc-tool-buttons">
        <Button onClick={() => void insert(false)}>{trans.__('Insert line')}</Button>
        <Button title={trans.__('Runs in a new cell below the active one')} onClick={() => void insert(true)}>
          {trans.__('Run')}
        </Button>
      </div>
      <Status>{status}</Status>
    </>
  );
}
