import { fieldText, fieldValue, ReviseForm } from '../card/reviseForm';

const fields = (form: ReviseForm): HTMLTextAreaElement[] => [...form.node.querySelectorAll('textarea')];
const press = (form: ReviseForm, name: string): void =>
  [...form.node.querySelectorAll('button')].find(({ textContent }) => textContent === name)?.click();

test('texts are edited as they are, all else as JSON', () => {
  expect(fieldText('a\n"b"')).toBe('a\n"b"');
  expect(fieldText([1, 'x'])).toBe('[\n 1,\n "x"\n]');
  expect(fieldValue('[2]', 'text')).toBe('[2]');
  expect(fieldValue('[2]', [1])).toEqual([2]);
  expect(() => fieldValue('{', {})).toThrow();
});

test('the changed arguments are sent whole; what does not fit is told in the form', async () => {
  const sent: unknown[] = [];
  const form = new ReviseForm(
    { command: 'ls', timeout: 5 },
    async input => {
      sent.push(input);
      if (input.timeout === 'x') {
        throw new Error('timeout must be a number');
      }
    },
    () => undefined
  );
  const [command, timeout] = fields(form);
  command.value = 'ls -l';
  timeout.value = 'five';
  press(form, 'Run with these changes');
  expect(form.node.textContent).toContain('timeout is not valid JSON');
  expect(sent).toEqual([]);
  timeout.value = '"x"';
  press(form, 'Run with these changes');
  await new Promise(resolve => setTimeout(resolve));
  expect(sent).toEqual([{ command: 'ls -l', timeout: 'x' }]);
  expect(form.node.querySelector('[role=alert]')?.textContent).toBe('timeout must be a number');
});

test('the form says that running approves, and when a request comes again', () => {
  const form = new ReviseForm({ command: 'ls' }, async () => undefined, () => undefined);
  expect(form.node.textContent).toContain('Running the changed call approves it');
  expect(form.node.textContent).toContain('only if a rule treats it differently');
});

test('escape leaves it', () => {
  const back = jest.fn();
  const form = new ReviseForm({ a: 1 }, async () => undefined, back);
  fields(form)[0].dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
  expect(back).toHaveBeenCalled();
});
