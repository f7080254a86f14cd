import { EditorState } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { forceParsing, language, syntaxTree } from '@codemirror/language';
import { pythonLanguage } from '@codemirror/lang-python';

import { highlighting, patchLine } from '../editing/highlight';
import { helpLines, renderHelp } from '../editing/hover';
import { magicOf, words } from '../editing/magicLine';
import { positionIn, replaceProviders, ToolCompleter } from '../editing/completer';
import { bodyOf, tokens } from '../editing/tokens';
import { setPreferences } from '../card/preferences';

test('other lines are not ours', () => {
  for (const line of ['x % tool', 'print("%tool read")', '%toolbox re', '%time', '']) {
    expect(magicOf(line, true)).toBeNull();
  }
  expect(magicOf('%%tool re', false)).toBeNull();
  expect(positionIn('%%agent\nhello {x', 16)).toMatchObject({ begin: 8, magic: null });
  expect(positionIn('%%tool bash\necho', 16)).toBeNull();
  expect(positionIn('%to', 3)).toBeNull();
});

test('words', () => {
  expect(words('%tool a "b c" d\\ e \'f', 5).map(({ text }) => text)).toEqual(['a', '"b c"', 'd\\ e', "'f"]);
});

test('what a word means, in lines', () => {
  expect(helpLines({ kind: 'tool', name: 'read', source: 'built in', usage: '%tool read filePath [limit]', description: 'Reads a file.' })).toEqual([
    'read (built in)', '%tool read filePath [limit]', 'Reads a file.'
  ]);
  expect(helpLines({ kind: 'parameter', name: 'limit', type: 'integer', default: 20, description: 'How many.' })).toEqual([
    'limit', 'Type: integer · Optional · Default: 20', 'How many.'
  ]);
  expect(helpLines({ kind: 'parameter', name: 'on', type: 'boolean', required: true, choices: [true, false] })).toEqual([
    'on', 'Type: boolean · Required · Values: true, false'
  ]);
  expect(helpLines({ kind: 'option', name: '--timeout SECONDS', description: 'stop after' })).toEqual(['--timeout SECONDS', 'stop after']);
});

test('a tool’s own words are text', () => {
  const node = renderHelp({ found: true, kind: 'tool', name: 'odd\u202e', description: '<img src=x onerror=alert(1)>' });
  expect(node.querySelector('img')).toBeNull();
  expect(node.textContent).toContain('<img src=x');
  expect(node.textContent).not.toContain('\u202e');
});

describe('asking the kernel', () => {
  const connection = { id: 'k', status: 'busy', anyMessage: null } as never;
  const kernels = [{ id: 'k', connection }] as never[];

  const completer = (answer: (request: unknown) => Promise<unknown>) => new ToolCompleter({ kernels: () => kernels }, (_, request) => answer(request));
  const context = (text: string, kernel: unknown = connection) =>
    ({
      session: { kernel },
      editor: {
        getCursorPosition: () => ({}),
        getOffsetAt: () => text.length,
        model: { sharedModel: { getSource: () => text } }
      }
    }) as never;
  const ask = async (ours: ToolCompleter, text: string) =>
    ours.fetch({ text, offset: [...text].length, mimeType: '' } as never, context(text));

  test('what it offers, with what it means', async () => {
    const asked: unknown[] = [];
    const help = { found: true, kind: 'tool', name: 'read', description: 'Reads a file.' };
    const ours = completer(async request => {
      asked.push(request);
      return { matches: [{ text: 'read', type: 'tool', help }, { text: 'ready', type: 'tool' }], start: 6, end: 8 };
    });
    const text = '📈 = 1\nmore()\n%tool re';
    const found = await ask(ours, text);
    expect(asked).toEqual([{ kind: 'complete', code: '📈 = 1\n%tool re', cursor_pos: 14 }]);
    expect([found.start, found.end]).toEqual([19, 21]);
    expect(found.items.map(({ label }) => label)).toEqual(['read', 'ready']);
    expect(found.items[0].documentation).toContain('Reads a file.');
    expect(found.items[1].documentation).toBeUndefined();
  });

  test('a kernel that is late is asked again, one that is gone offers nothing', async () => {
    const replies = [{ late: true }, { matches: [{ text: 'read', type: 'tool' }], start: 6, end: 8 }];
    expect((await ask(completer(async () => replies.shift()), '%tool re')).items).toHaveLength(1);
    let asked = 0;
    expect((await ask(completer(async () => ({ late: ++asked > 0 })), '%tool re')).items).toEqual([]);
    expect(asked).toBe(5);
    expect((await ask(completer(() => Promise.reject(new Error('gone'))), '%tool re')).items).toEqual([]);
  });

  test('a word that the kernel only repeats is no suggestion', async () => {
    const ours = completer(async () => ({ matches: [{ text: 'zz', type: 'text' }], start: 6, end: 8 }));
    expect((await ask(ours, '%tool zz')).items).toEqual([]);
  });

  test('JupyterLab’s own are kept off our lines alone, and come back when this is switched off', async () => {
    const ours = completer(async () => ({}));
    const other = { isApplicable: async (_: unknown) => true };
    const applicable = (place: unknown) => other.isApplicable(place);
    replaceProviders({ getProviders: () => new Map([['CompletionProvider:kernel', other]]) }, ours);
    replaceProviders({}, ours);
    expect(await applicable(context('%tool re'))).toBe(false);
    expect(await applicable(context('prin'))).toBe(true);
    expect(await applicable(context('%tool re', { id: 'x', status: 'idle' }))).toBe(true);
    setPreferences({ completions: false });
    expect(await applicable(context('%tool re'))).toBe(true);
    setPreferences({});
  });
});

describe('colours', () => {
  const parts = (line: string) => {
    const magic = magicOf(line, true);
    return magic ? tokens(line, magic).map(({ from, to, kind }) => `${kind}:${line.slice(from, to)}`) : [];
  };

  test.each([
    ['r = %tool read a.txt limit=3', ['magic:%tool', 'tool:read', 'key:limit', 'operator:=', 'number:3']],
    ["%tool -q --timeout 3 grep 'a b' x=true", ['magic:%tool', 'option:-q', 'option:--timeout', 'number:3', 'tool:grep', "string:'a b'", 'key:x', 'operator:=', 'atom:true']],
    ['%tool t a:=[1, {"b": "c d"}] e', ['magic:%tool', 'tool:t', 'key:a', 'operator::=', 'bracket:[', 'number:1', 'bracket:,', 'bracket:{', 'key:"b"', 'string:"c d"', 'bracket:}', 'bracket:]']],
    ['%tool t {"a": null', ['magic:%tool', 'tool:t', 'bracket:{', 'key:"a"', 'atom:null']],
    ['%tool bash ls --all "x', ['magic:%tool', 'tool:bash', 'string:"x']],
    ["%tool read it's", ['magic:%tool', 'tool:read']],
    ['%tool read a{i}.txt', ['magic:%tool', 'tool:read', 'expression:{i}']],
    ['%%agent -m x --new', ['magic:%%agent', 'option:-m', 'option:--new']],
    ['%permissions allow bash', ['magic:%permissions', 'tool:allow']]
  ])('of %s', (line, wanted) => {
    expect(parts(line)).toEqual(wanted);
  });

  test('parts are in order and apart, whatever is typed', () => {
    const line = `%tool t ${'a=\'"{[:="x", '.repeat(700)}`;
    let end = 0;
    for (const { from, to } of tokens(line, magicOf(line, true) as never)) {
      expect(from).toBeGreaterThanOrEqual(end);
      end = to;
    }
  });

  test('what a cell holds', () => {
    expect(bodyOf('%%tool bash')).toEqual({ kind: 'language', name: 'Shell' });
    expect(bodyOf("%%tool -q write 'src/a b.ts'")).toEqual({ kind: 'file', name: 'a b.ts' });
    expect(bodyOf('%%tool edit old=x filePath=a.css')).toEqual({ kind: 'file', name: 'a.css' });
    expect(bodyOf('%%tool write')).toEqual({ kind: 'plain' });
    expect(bodyOf('%%tool constructor')).toEqual({ kind: 'plain' });
    expect(bodyOf('%%agent -m x')).toEqual({ kind: 'agent' });
    expect(bodyOf('%%time')).toBeNull();
    expect(['*** Begin Patch', '+a', '-b', ' c', '@@'].map(patchLine)).toEqual(['meta', 'inserted', 'deleted', '', 'meta']);
  });

  function editor(doc: string) {
    const loaded: unknown[] = [];
    const load = async (wanted: { name?: string; file?: string }) => {
      loaded.push(wanted);
      return wanted.name === 'nosuch' || wanted.file?.endsWith('.zzz') ? null : pythonLanguage;
    };
    const extensions = [highlighting({ load }, () => 'text/x-ipython'), pythonLanguage.extension];
    const view = new EditorView({ state: EditorState.create({ doc, extensions }), parent: document.body });
    const change = (from: number, to: number, insert: string) => view.dispatch({ changes: { from, to, insert } });
    const names = (): string[] => {
      forceParsing(view, view.state.doc.length, 1000);
      const found: string[] = [];
      syntaxTree(view.state).iterate({ enter: ({ name, from, to }) => void (to > from && found.push(name)) });
      return found;
    };
    const painted = () => [...view.dom.querySelectorAll('.oc-tok')].map(node => node.textContent);
    return { view, change, names, painted, loaded, arrived: () => new Promise(resolve => setTimeout(resolve, 20)) };
  }

  test('a line of ours is nothing to Python, nor are the lines that it goes on over', async () => {
    const { view, names, painted, arrived } = editor("a = 1\nr = %tool bash echo it's \\\n  a 'b\nfor\n  x");
    await arrived();
    expect(painted()).toEqual(['%tool', 'bash', "'s \\"]);
    expect(names()).not.toContain('String');
    expect(view.state.facet(language)).not.toBe(pythonLanguage);
    view.destroy();
  });

  test('a body has its own language, and all goes when the first line changes', async () => {
    const { view, change, names, painted, loaded, arrived } = editor("%%tool write 'it.py\nx = 'a'");
    expect(names()).not.toContain('String');
    await arrived();
    expect(loaded).toEqual([{ file: 'it.py' }]);
    expect(names()).toContain('String');
    expect(painted()).toContain('%%tool');
    change(0, 8, '# ');
    expect(painted()).toEqual([]);
    expect(view.state.facet(language)).toBe(pythonLanguage);
    expect(names()).toContain('Comment');
    change(0, 2, '%%tool apply_patch\n+');
    expect(names()).not.toContain('String');
    expect(painted()).toContain("+rite 'it.py");
    view.destroy();
  });

  test('an editor without a language, and one that is no cell of Python', () => {
    for (const mime of ['text/x-ipython', 'text/plain']) {
      const extensions = highlighting({ load: async () => null }, () => mime);
      const view = new EditorView({ state: EditorState.create({ doc: 'x\n', extensions }) });
      view.dispatch({ changes: { from: 0, insert: '%%tool bash\n' } });
      expect(view.dom.querySelectorAll('.oc-tok').length).toBe(mime === 'text/plain' ? 0 : 2);
      view.destroy();
    }
  });

  test('typing a line of ours in a plain cell', async () => {
    const { view, change, painted, loaded, arrived } = editor('x = 1\n\ny');
    expect(loaded).toEqual([]);
    change(6, 6, '%tool read a');
    await arrived();
    expect(painted()).toEqual(['%tool', 'read']);
    change(6, 18, 'z');
    expect(painted()).toEqual([]);
    expect(view.state.facet(language)).toBe(pythonLanguage);
    view.destroy();
  });
});
