import cases from '../../../tests/data/tool_lines.json';
import { pythonCall, toolLine } from '../card/toolLine';

// tests/unit/jupyter/test_tool_lines.py reads the same lines back
test.each(cases.map(({ tool, input, line, python }) => ({ tool, input: input as unknown, line, python })))(
  '$line',
  ({ tool, input, line, python }) => {
    expect(toolLine(tool, input)).toBe(line);
    expect(pythonCall(tool, input)).toBe(python);
  }
);

test.each([
  ['a tool that is no name', 'x\n!rm -rf /', {}],
  ['a tool that is an option', '--help', {}],
  ['arguments that are no object', 'read', ['a']],
  ['nothing at all', 'read', null],
  ['a command that is none', 'bash', { command: 5 }],
  ['names that a command’s line does not know', 'bash', { command: 'ls', 'a b': 1 }]
])('no line for %s', (_, tool, input) => {
  expect(toolLine(tool, input)).toBeUndefined();
});
