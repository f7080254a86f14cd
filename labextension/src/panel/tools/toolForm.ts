/** One tool: what it is, a form for its arguments, and the cell that is made of them. */

import { Widget } from '@lumino/widgets';
import type { OpenKernel } from '../../kernel/hub';
import { insertCell, takesCells } from '../../notebook/insertCell';
import { button, el, setText, show } from '../../card/dom';
import { visible } from '../../card/format';
import { trans } from '../../card/i18n';
import { statusLine, wordsOf } from '../controls';
import type { Surroundings } from '../section';
import { toolLine } from '../../card/toolLine';
import { ArgumentsForm } from './argumentsForm';
import { argumentsOf, errorsOf, formSchema } from './formSchema';
import type { Problem, ToolField } from './formSchema';

/** Answer to `tool`. */
export interface ToolReply {
  name: string;
  fields: ToolField[];
  description: string;
}

/** Characters of the description that are shown unasked. */
const SHORT = 200;

export class ToolForm {
  readonly node = el('div', 'oc-tool');
  readonly title = el('h3', 'oc-tool-name');
  private readonly form: ArgumentsForm;
  private readonly fields = el('div');
  private readonly status = statusLine();

  /**
   * @param kernel - where the tool is; undefined when it is gone.
   */
  constructor(
    private readonly around: Pick<Surroundings, 'app' | 'hub'>,
    private readonly kernel: () => OpenKernel | undefined,
    private readonly tool: ToolReply
  ) {
    this.title.textContent = tool.name;
    this.title.tabIndex = -1;
    this.form = new ArgumentsForm(formSchema(tool.fields));
    const buttons = el('div', 'oc-tool-buttons');
    const run = button(trans.__('Run'), '', 'oc-panel-button', () => void this.make(true));
    run.title = trans.__('Runs in a new cell below the active one');
    buttons.append(button(trans.__('Insert line'), '', 'oc-panel-button', () => void this.make(false)), run);
    const none = el('p', 'oc-panel-empty', trans.__('This tool takes no arguments.'));
    show(none, !tool.fields.length);
    this.node.append(this.title, ...this.about(), this.fields, none, buttons, this.status);
  }

  /** Draws the fields; the node must be in the page. */
  attach(): void {
    Widget.attach(this.form, this.fields);
  }

  dispose(): void {
    this.form.dispose();
  }

  private about(): HTMLElement[] {
    const text = visible(this.tool.description.trim());
    if (text.length <= SHORT) {
      return [el('p', 'oc-tool-about', text)];
    }
    const fold = el('details', 'oc-tool-about');
    fold.append(el('summary', '', trans.__('Description for a model')), el('pre', 'oc-tool-text', text));
    return [fold];
  }

  /** Puts the call into a new cell; `run`: and runs it. */
  private async make(run: boolean): Promise<void> {
    const problems: Problem[] = [];
    const input = argumentsOf(this.tool.fields, this.form.content, problems);
    if (this.showProblems(problems)) {
      return;
    }
    const source = toolLine(this.tool.name, input);
    const kernel = this.kernel();
    if (source === undefined) {
      this.report(trans.__('These arguments can’t be written as a line; call the tool from Python.'));
      return;
    }
    if (!kernel || !takesCells(kernel.document)) {
      this.report(trans.__('Open a notebook first: there is none to insert the cell into.'));
      return;
    }
    try {
      const { name } = this.tool;
      const request = { what: 'tool_check', name, source, input };
      const { errors } = await this.around.hub.request<{ errors: Problem[] }>(kernel.id, request);
      if (this.showProblems(errors)) {
        return;
      }
    } catch (error) {
      this.report(wordsOf(error));
      return;
    }
    const { document } = kernel;
    if (takesCells(document)) {
      insertCell(this.around.app, document, document.content.activeCellIndex + 1, source, run);
      this.report(run ? trans.__('Running in a new cell.') : trans.__('Inserted as a new cell.'));
    }
  }

  private showProblems(problems: readonly Problem[]): boolean {
    const { errors, others } = errorsOf(this.tool.fields, problems);
    this.form.showErrors(errors);
    const words = others.map(({ path, message }) => (path.length ? `${path.join('.')}: ${message}` : message));
    this.report(problems.length ? [...words, trans.__('Nothing was inserted yet.')].join(' ') : '');
    return problems.length > 0;
  }

  private report(words: string): void {
    setText(this.status, words);
  }
}
