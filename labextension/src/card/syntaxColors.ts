/** Colours for code on a card: enough to read by, of any language, in little space. */

import { el } from './dom';

const PYTHON =
  'False|None|True|and|as|assert|async|await|break|case|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|match|nonlocal|not|or|pass|raise|return|try|while|with|yield';
const OTHERS = '|NULL|TRUE|FALSE|catch|const|do|done|end|export|false|fi|fn|func|function|let|library|new|null|struct|switch|then|this|throw|true|using|var|void';
/** Languages whose comments do not begin with `#`. */
const SLASHES = /^(?:c|c\+\+|cpp|csharp|c#|go|java|javascript|typescript|kotlin|rust|scala|swift)$/;


const STRINGS = '"""[^]*?(?:"""|(?![^]))|\'\'\'[^]*?(?:\'\'\'|(?![^]))|"(?:\\\\.|[^"\\\\\\n])*"?|\'(?:\\\\.|[^\'\\\\\\n])*\'?|`[^`\\n]*`?';
const token = (comment: string): RegExp =>
  new RegExp(`(${comment})|(${STRINGS})|(^[ \\t]*[%!][^\\n]*)|([A-Za-z_$][\\w$]*)|(\\d[\\w.]*)`, 'gm');
const HASH = token('#[^\\n]*');
const SLASH = token('//[^\\n]*|/\\*[^]*?(?:\\*/|(?![^]))');

/** `code` of the language `language` (a notebook's word for it; empty: Python) as nodes. */
export function codeNodes(code: string, language: string): Node[] {
  const name = language.toLowerCase();
  const keywords = (PYTHON + (/^(?:i?python\d?)?$/.test(name) ? '' : OTHERS)).split('|');
  const nodes: Node[] = [];
  let end = 0;
  for (const match of code.matchAll(SLASHES.test(name) ? SLASH : HASH)) {
    const [text, comment, string, magic, word, number] = match;
    const kind = comment ? 'comment' : string ? 'string' : magic ? 'magic' : number ? 'number' : keywords.includes(word) ? 'keyword' : '';
    if (kind) {
      nodes.push(document.createTextNode(code.slice(end, match.index)), el('span', `oc-c-${kind}`, text));
      end = match.index + text.length;
    }
  }
  nodes.push(document.createTextNode(code.slice(end)));
  return nodes;
}
