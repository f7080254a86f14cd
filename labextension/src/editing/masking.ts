/**
 * A language of CodeMirror that does not see our lines: to Python a line such as `%tool bash echo it's` is nonsense, and
 * its open quote would colour all that follows. The parser is given blanks in their place, of the same length.
 */

import { DocInput, Language } from '@codemirror/language';
import type { Text } from '@codemirror/state';
import { Parser } from '@lezer/common';
import type { Input, PartialParse, TreeFragment } from '@lezer/common';

import { LONGEST, magicOf } from './magicLine';

/** Lines that a magic goes on over, each but the last with a backslash at its end. */
const GOES_ON = 50;

/** Where in the line number `n` of `doc` blanks begin; -1: nowhere. */
export function blankFrom(doc: Text, n: number, cell: boolean): number {
  const { text } = doc.line(n);
  if (n === 1 && cell) {
    return 0;
  }
  if (cell) {
    return -1;
  }
  const magic = magicOf(text, false);
  if (magic) {
    return magic.start;
  }
  for (let before = n - 1; before > 0 && before >= n - GOES_ON; before--) {
    const line = doc.line(before).text;
    if (!line.endsWith('\\')) {
      break;
    }
    if (magicOf(line, false)) {
      return 0;
    }
  }
  return -1;
}

/** Gives a parser a cell's text with blanks for our lines. */
class MaskedInput implements Input {
  readonly length: number;
  readonly lineChunks = true;

  constructor(
    private readonly input: Input,
    private readonly doc: Text,
    private readonly cell: boolean
  ) {
    this.length = input.length;
  }

  chunk(from: number): string {
    return this.masked(from, this.input.chunk(from));
  }

  read(from: number, to: number): string {
    return this.masked(from, this.input.read(from, to));
  }

  private masked(from: number, text: string): string {
    if (text === '' || text === '\n' || from >= this.doc.length) {
      return text;
    }
    let made = '';
    for (let at = 0; at < text.length; ) {
      const line = this.doc.lineAt(from + at);
      const end = Math.min(text.length, line.to - from);
      const blank = line.length > LONGEST ? -1 : blankFrom(this.doc, line.number, this.cell);
      const begin = blank < 0 ? end : Math.min(end, Math.max(at, line.from + blank - from));
      made += text.slice(at, begin) + ' '.repeat(end - begin) + text.slice(end, end + 1);
      at = end + 1;
    }
    return made;
  }
}

class MaskedParser extends Parser {
  constructor(
    private readonly inner: Parser,
    private readonly cell: boolean
  ) {
    super();
  }

  createParse(input: Input, fragments: readonly TreeFragment[], ranges: readonly { from: number; to: number }[]): PartialParse {
    const maskedInput = input instanceof DocInput ? new MaskedInput(input, input.doc, this.cell) : input;
    return this.inner.startParse(maskedInput, fragments, ranges);
  }
}

const cells = new WeakMap<Language, Language>();
const lines = new WeakMap<Language, Language>();

/** `language` blind to the cell's first line (`cell`), or to every line that is a magic of ours. */
export function masked(language: Language, cell: boolean): Language {
  const cache = cell ? cells : lines;
  let maskedLanguage = cache.get(language);
  if (!maskedLanguage) {
    maskedLanguage = new Language(language.data, new MaskedParser(language.parser, cell), [], language.name);
    cache.set(language, maskedLanguage);
  }
  return maskedLanguage;
}
