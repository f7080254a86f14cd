/** No English stands outside of the translator, and with another language's pack a card speaks it. */

import { renderCard } from '../card';
import { outcomeWord } from '../card/wording';
import { setTranslation } from '../card/i18n';
import { outcomes } from '../card/outcomes';
import { batch } from './gallery';

interface Entry {
  name: string;
  isDirectory(): boolean;
}
declare const require: (name: string) => unknown;
declare const __dirname: string;
const { readdirSync, readFileSync } = require('node:fs') as {
  readdirSync(path: string, options: { withFileTypes: true }): Entry[];
  readFileSync(path: string, encoding: 'utf8'): string;
};
const { join } = require('node:path') as { join(...parts: string[]): string };

const SOURCES = join(__dirname, '..');
/** Texts that read like English and are not for people, or stand as they are in every language. */
const ALLOWED = new Set<string>([
  // the kernel's outcomes, in the contract of cards; `outcomes.ts` has them for translators
  'denied by a rule',
  'denied by you',
  'denied by policy',
  'refused by a hook',
  'dismissed by you',
  'timed out',
  'invalid arguments',
  'dry run',
  // the kind of a widget, a word in the console
  'OpenCode tools',
  'control channel',
  // an example of a command, a link's relation
  'git push',
  'noopener noreferrer'
]);

/** All our sources. */
function sources(folder = ''): string[] {
  return readdirSync(join(SOURCES, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? (entry.name === '__tests__' ? [] : sources(path)) : /\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

/** `text` without comments, imports and what goes through the translator. */
function bare(text: string): string {
  return text
    .replace(/\/\*[^]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '$1')
    .replace(/^(import|export) [^;]*from .*$/gm, '')
    .replace(/trans\._n\(\s*'(?:[^'\\]|\\.)*',\s*'(?:[^'\\]|\\.)*'/g, '(')
    .replace(/trans\.__\(\s*'(?:[^'\\]|\\.)*'/g, '(')
    // of a plugin, for developers; JupyterLab does not translate it
    .replace(/^ {2}description:\s*'[^']*'/gm, '')
    .replace(/(console\.\w+|new (?:Type|Range)?Error)\([^;]*;/g, '');
}

/** A heuristic: two words of letters with a blank between them, or one with a capital, where an element's text is set. */
function english(text: string): string[] {
  const words = [...text.matchAll(/'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/g)].map(match => match[1] ?? match[2]);
  const sentence = /(^|\s)[A-Za-z’]{2,}[,:]? [a-z’]{2,}/;
  const told = [...text.matchAll(/(?:setText|button)\([^)]*?'([^']*[a-z]{3}[^']*)'|\.(?:title|placeholder|label|caption) = '([^']+)'|aria-label', '([^']+)'/g)];
  const set = told.map(match => match[1] ?? match[2] ?? match[3]).filter(one => /^[A-Z]/.test(one));
  const elements = [...text.matchAll(/(?<=[^=\s(]\s*)>\s*([A-Z][a-z]+[^<>{};=()]*)<\//g)].map(match => match[1]);
  return [...new Set([...elements, ...words.filter(one => sentence.test(one.replace(/\$\{[^}]*\}/g, ''))), ...set])];
}

/** Class names, selectors and styles, which are no English. */
const looksLikeCode = (text: string): boolean =>
  text.split(/\s+/).every(word => /^(oc|jp|lm)-[\w-]*$|^$/.test(word)) || /[.#[{][\w-]+.*[\]}>:]|=>|::/.test(text);

test('no English stands outside of the translator', () => {
  const found = sources().flatMap(path => {
    const name = path.replace(/\\/g, '/');
    const texts = english(bare(readFileSync(join(SOURCES, path), 'utf8')));
    return texts.filter(text => !looksLikeCode(text) && !ALLOWED.has(text)).map(text => `${name}: ${text}`);
  });
  expect(found).toEqual([]);
});

test('the check finds what it looks for', () => {
  expect(english(bare('<Button onClick={run}>Close it</Button>'))).toEqual(['Close it']);
  expect(english(bare("button('Close it', '', 'oc-button', run)"))).toEqual(['Close it']);
  expect(english(bare("node.title = 'Close';"))).toEqual(['Close']);
  expect(english(bare("setText(node, `no lines of ${whole}`)"))).toEqual(['no lines of ${whole}']);
  expect(english(bare("setText(node, trans.__('Close it')); // a word to whom\n"))).toEqual([]);
});

test('with the pack of another language a card speaks it', () => {
  const upside = (text: string): string => `«${text}»`;
  const words = outcomes();
  setTranslation({ __: upside, _n: (one, many, n) => upside(n === 1 ? one : many) });
  try {
    expect(words.map(outcomeWord)).toEqual(outcomes());
    expect(outcomeWord('interrupted')).toBe('«interrupted by you»');
    const root = document.createElement('div');
    renderCard(root, batch(), { reply: jest.fn(), answer: jest.fn(), dismiss: jest.fn(), stop: jest.fn(), revise: jest.fn() });
    const names = [...root.querySelectorAll('button')].map(one => one.getAttribute('aria-label') ?? '');
    expect(names.length).toBeGreaterThan(8);
    expect(names.filter(name => name && !name.startsWith('«'))).toEqual([]);
    const states = [...root.querySelectorAll('.oc-state')].map(one => one.textContent ?? '');
    expect(states.filter(state => !state.startsWith('«'))).toEqual([]);
  } finally {
    setTranslation(undefined);
  }
});
