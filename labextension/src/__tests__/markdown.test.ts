import type { ControlBridge } from '../kernel/messages';
import { inline, markdown } from '../run/markdown';

function draw(text: string): HTMLElement {
  const root = document.createElement('div');
  root.append(...markdown(text));
  return root;
}

test('paragraphs, headings, lists, quotes, code, bold, italic and links are drawn', () => {
  const root = draw(
    '# Title\n\nOne **bold** and *it* and `a*b*c`.\nsecond line\n\n- x\n  - y\n2. z\n\n> said\n\n---\n\n```py\n<b>1</b>\n# no\n```\nend [docs](https://example.org/a_(b)) https://example.org/x.'
  );
  expect(root.querySelector('[role=heading]')?.textContent).toBe('Title');
  expect(root.querySelector('p b')?.textContent).toBe('bold');
  expect(root.querySelector('p i')?.textContent).toBe('it');
  expect(root.querySelector('p code')?.textContent).toBe('a*b*c');
  expect(root.querySelectorAll('p br')).toHaveLength(1);
  expect([...root.querySelectorAll('.oc-li')].map(li => li.textContent)).toEqual(['•x', '•y', '2.z']);
  expect(root.querySelector('blockquote')?.textContent).toBe('said');
  expect(root.querySelector('hr')).not.toBeNull();
  expect(root.querySelector('pre')?.textContent).toBe('<b>1</b>\n# no');
  expect([...root.querySelectorAll('a')].map(a => a.href)).toEqual(['https://example.org/a_(b)', 'https://example.org/x']);
  expect(root.textContent).toContain('docs (https://example.org/a_(b))');
});

test('formulas are marked for the typesetter, prices and shell variables are not', () => {
  const formulas = (text: string): (string | null)[] => [...draw(text).querySelectorAll('.oc-formula')].map(node => node.textContent);
  expect(formulas('So $a_1*b_2*c$ and \\(x^2\\), then\n$$\n\\int_0^1 x\n$$\nend \\[y\\]')).toEqual([
    '$a_1*b_2*c$', '\\(x^2\\)', '$$\n\\int_0^1 x\n$$', '\\[y\\]'
  ]);
  expect(formulas('$$ e = m c^2 $$')).toEqual(['$$ e = m c^2 $$']);
  expect(formulas('It costs $5, not $6; set `$A` to `$B`. US$3 and $HOME/$USER. $$ no end')).toEqual([]);
});

test('a block of code can be copied, and in a notebook of JupyterLab be put into a cell', () => {
  const place = globalThis as { __opencode_jupyter?: Partial<ControlBridge> };
  const names = (root: HTMLElement): string[] => [...root.querySelectorAll('button')].map(({ textContent }) => textContent ?? '');
  const text = '```python\nprint(1)\n```\n\n```bash\nls\n```\n\n```rust\nfn main() {}\n```\n\n```\nplain\n';
  expect(names(draw(text))).toEqual(['Copy', 'Copy', 'Copy', 'Copy']);
  const inserted: string[] = [];
  let notebook = true;
  place.__opencode_jupyter = { canInsert: () => notebook, insertCell: (_, source) => void inserted.push(source) };
  try {
    const root = draw(text);
    expect(names(root)).toEqual(['Copy', 'Insert as cell', 'Copy', 'Insert as cell', 'Copy', 'Copy', 'Insert as cell']);
    const buttons = [...root.querySelectorAll('button')].filter(({ textContent }) => textContent === 'Insert as cell');
    buttons.forEach(button => button.click());
    expect(inserted).toEqual(['print(1)', '%%bash\nls', 'plain']);
    notebook = false; // the card of a console
    const box = root.querySelector('.oc-box') as HTMLElement;
    box.dispatchEvent(new Event('focusin'));
    expect(buttons[0].hidden).toBe(true);
    expect([...root.querySelectorAll('pre')].map(pre => pre.textContent)).toEqual(['print(1)', 'ls', 'fn main() {}', 'plain']);
  } finally {
    delete place.__opencode_jupyter;
  }
});

const HOSTILE = [
  '<img src=x onerror=alert(1)>',
  '<script>alert(1)</script>',
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt:alert(1))',
  '[x](data:text/html,<script>1</script>)',
  '[x]( javascript:alert(1))',
  '[x](//evil.example)',
  '[x](vbscript:x) <svg onload=alert(1)>',
  '![p](https://evil.example/p.png)',
  '<a href="javascript:alert(1)">x</a>',
  '`<b>` **<i onclick=x>**',
  '- <iframe src=x>',
  '# <style>*{display:none}</style>',
  '> <object data=x>',
  '```\n<script>alert(1)</script>',
  '| <img src=x onerror=alert(1)> |\n|---|\n| <script>alert(1)</script> |',
  '[a](https://x.example/"onmouseover="alert(1))'
];

test.each(HOSTILE)('%s shows as text', text => {
  const root = draw(text);
  const known = new Set(['P', 'B', 'I', 'CODE', 'PRE', 'A', 'SPAN', 'DIV', 'BR', 'HR', 'BLOCKQUOTE', 'TABLE', 'TR', 'TH', 'TD', 'BUTTON']);
  for (const node of root.querySelectorAll('*')) {
    expect(known).toContain(node.tagName);
    for (const { name } of node.attributes) {
      expect(['class', 'href', 'target', 'rel', 'role', 'aria-level', 'style', 'tabindex', 'aria-label', 'type']).toContain(name);
    }
    expect(node.getAttribute('href') ?? 'https://').toMatch(/^https?:/i);
  }
  for (const word of text.match(/(?:alert|onerror|script|iframe|style|object|svg)/g) ?? []) {
    expect(root.textContent + [...root.querySelectorAll('a')].map(a => a.href).join('')).toContain(word);
  }
});

test('a table', () => {
  const root = draw('Before\n| file | **n** |\n|:--|--:|\n| a\\|b | 1 |\n| c | 2 | more |\n| d |\n\nAfter');
  const rows = [...root.querySelectorAll('tr')].map(row => [...row.children].map(cell => cell.textContent));
  expect(rows).toEqual([['file', 'n'], ['a|b', '1'], ['c', '2'], ['d', '']]);
  expect(root.querySelector('th b')?.textContent).toBe('n');
  expect([...root.querySelectorAll('td')][1].style.textAlign).toBe('right');
  expect([...root.querySelectorAll('p')].map(p => p.textContent)).toEqual(['Before', 'After']);
});

test.each(['a | b\nc | d', '| a | b |\n|---|', '| a |\n| b |', 'a\n---'])('%s is no table', text => {
  expect(draw(text).querySelector('table')).toBeNull();
});

test('a link that is called something else shows where it leads', () => {
  expect(draw('[https://good.example](https://evil.example)').textContent).toContain('(https://evil.example)');
});

test('characters that would mislead the eye are shown', () => {
  expect(draw('a\u202eb').textContent).toBe('a\\u202eb');
});

test('long and hostile lines take no time', () => {
  const began = performance.now();
  for (const piece of ['**a ', '`', '[', '*a', '(', '**', '[a](']) {
    draw(`${piece.repeat(1_000)}\n`.repeat(10));
    inline(piece.repeat(100_000));
  }
  expect(performance.now() - began).toBeLessThan(3_000);
});

test('a text that is too long is shown as it is', () => {
  expect(draw('**a** '.repeat(20_000)).querySelector('b')).toBeNull();
});
