/** The form for a tool's arguments, as JupyterLab's form component takes it, and a form's content as the arguments of a call. */

import { errorMessage } from '../../card/format';
import { trans } from '../../card/i18n';

/** One parameter of a tool, as the kernel describes it. */
export interface ToolField {
  name: string;
  /** The box that it needs. */
  kind: 'text' | 'number' | 'choice' | 'list' | 'json';
  /** In words. */
  type: string;
  description: string;
  required: boolean;
  default: unknown;
  choices: unknown[];
}

/** One node of a form's schema. */
export interface FormSchema {
  type: 'string' | 'array' | 'object';
  title?: string;
  description?: string;
  /** How the text of a box is read; without one it is the value. */
  format?: 'number' | 'json';
  /** The values to choose from. */
  enum?: unknown[];
  items?: FormSchema;
  properties?: Record<string, FormSchema>;
  required?: string[];
}

/** A place in the arguments, and what is wrong there. */
export interface Problem {
  path: (string | number)[];
  message: string;
}

/** Errors by field, as the form takes them. */
export interface ErrorSchema {
  __errors?: string[];
  [name: string]: ErrorSchema | string[] | undefined;
}

/** The form for a tool's arguments, required ones first. */
export function formSchema(fields: readonly ToolField[]): FormSchema {
  const sorted = [...fields].sort((a, b) => Number(b.required) - Number(a.required));
  return {
    type: 'object',
    properties: Object.fromEntries(sorted.map(field => [field.name, box(field)])),
    required: sorted.filter(({ required }) => required).map(({ name }) => name)
  };
}

function box({ name, kind, type, description, required, default: fallback, choices }: ToolField): FormSchema {
  const about = [
    description,
    fallback === null ? '' : trans.__('Default: %1', JSON.stringify(fallback)),
    kind === 'json' ? trans.__('JSON: %1', type) : ''
  ];
  return {
    type: kind === 'list' ? 'array' : 'string',
    ...(kind === 'list' && { items: { type: 'string' } }),
    ...(kind === 'choice' && { enum: choices }),
    ...((kind === 'number' || kind === 'json') && { format: kind }),
    title: required ? `${name} (${trans.__('required')})` : name,
    description: about.filter(Boolean).join(' · ')
  };
}

/**
 * The arguments that a form holds; what was left open is left out. Whether they are valid is for the kernel to say.
 *
 * @param problems - receives what cannot be read.
 */
export function parseArguments(fields: readonly ToolField[], content: object, problems: Problem[]): Record<string, unknown> {
  const typed = new Map<string, unknown>(Object.entries(content));
  const values = fields.map(field => [field.name, valueOf(field, typed.get(field.name), problems)] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

function valueOf({ name, kind, required }: ToolField, typed: unknown, problems: Problem[]): unknown {
  if (kind === 'list') {
    const items = Array.isArray(typed) ? typed.filter(item => item !== undefined) : [];
    return items.length || required ? items : undefined;
  }
  if (typeof typed !== 'string' || (kind !== 'json' && kind !== 'number')) {
    return typed;
  }
  const path = [name];
  let value: unknown;
  try {
    value = kind === 'json' ? JSON.parse(typed) : numberOf(typed);
  } catch (error) {
    problems.push({ path, message: trans.__('This is not valid JSON: %1', errorMessage(error)) });
  }
  if (!isExact(value)) {
    problems.push({ path, message: trans.__('A number has too many digits for this form; write the line by hand.') });
  }
  return value;
}

/** The number a text stands for; the text itself, for the kernel to refuse, where it is none. */
function numberOf(text: string): number | string {
  return /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** Whether no whole number lost digits when it was read. */
function isExact(value: unknown): boolean {
  if (typeof value === 'number') {
    return !Number.isInteger(value) || Number.isSafeInteger(value);
  }
  return typeof value !== 'object' || value === null || Object.values(value).every(isExact);
}

/** Problems beside the field that has them, and those that belong to none. */
export function groupProblems(fields: readonly ToolField[], problems: readonly Problem[]): { errors: ErrorSchema; others: Problem[] } {
  const errors: ErrorSchema = {};
  const others: Problem[] = [];
  for (const problem of problems) {
    const [name, index] = problem.path;
    const field = fields.find(other => other.name === name);
    if (!field) {
      others.push(problem);
      continue;
    }
    let ofField = (errors[field.name] ??= {}) as ErrorSchema;
    if (field.kind === 'list' && index !== undefined) {
      ofField = (ofField[index] ??= {}) as ErrorSchema;
    }
    (ofField.__errors ??= []).push(problem.message);
  }
  return { errors, others };
}
