// Source text to a module that Node.js runs, with what Bun gives a module besides: `require` and `__dirname` in ES modules,
// JSON and text files as modules, TypeScript of every kind.
import * as node from 'node:module';
import { extname } from 'node:path';

export const TYPESCRIPT = new Set(['.ts', '.mts', '.cts', '.tsx']);
const ES_SYNTAX = /^\s*(?:import\b\s*[\w*{'"]|export\b\s*[\w*{])|\bimport\.meta\b/m;
const COMMON_SYNTAX = /\bmodule\.exports\b|^\s*exports\.\w/m;
const BUN = /\bBun\s*[.[]|\b(?:from|import|require)\s*\(?\s*["']bun(?::[\w/-]+)?["']/;
const NAMESPACE = /(?<!declare\s+)\b(?:namespace|module)\s+[\w$.]+\s*\{/;
let typescript;

/** Whether a text uses what only Bun has. */
export function needsBun(text) {
  return BUN.test(text.replace(/\/\*[\s\S]*?\*\/|(^|[^:])\/\/.*$/gm, '$1'));
}

/** Load what turns TypeScript into JavaScript; once, and only if a file needs it. */
export async function prepare() {
  typescript ??= (await import('../vendor/typescript.mjs')).transform;
}

/** A file of the project as `{format, source}`; null to leave it to Node.js. */
export function compile(text, path) {
  const kind = extname(path);
  let source = text.replace(/^\uFEFF?#!/, '//');
  if (TYPESCRIPT.has(kind)) source = stripTypes(source, path, kind);
  const es = kind === '.mts' || kind === '.mjs' || (kind !== '.cts' && (ES_SYNTAX.test(source) || !COMMON_SYNTAX.test(source)));
  if (es) return { format: 'module', source: bunLike(source) };
  return TYPESCRIPT.has(kind) ? { format: 'commonjs', source } : null;
}

function stripTypes(text, path, kind) {
  const transforms = kind === '.tsx' ? ['typescript', 'jsx'] : ['typescript'];
  try {
    return typescript(NAMESPACE.test(text) ? byNode(text, path) : text, { transforms, filePath: path, disableESTransforms: true }).code;
  } catch (error) {
    if (error.at) throw error;
    const { message, loc } = error;
    const plain = message.replace(/^Error transforming .*?: /, '').replace(/ \(\d+:\d+\)$/, '');
    throw Object.assign(new SyntaxError(plain), { at: { path, line: loc?.line } });
  }
}

// Namespaces with values are dropped by the other; Node.js knows them, as long as it has this mode.
function byNode(text, path) {
  try {
    return node.stripTypeScriptTypes(text, { mode: 'transform', sourceUrl: path });
  } catch (error) {
    const line = text.slice(0, text.search(NAMESPACE)).split('\n').length;
    const unsupported = error.code === 'ERR_INVALID_ARG_VALUE'; // from release 26 on
    const reason = unsupported ? 'use a module or an object in its place, or Bun or Node.js 24' : error.message;
    throw Object.assign(new SyntaxError(`a namespace with values can't be run here: ${reason}`), { at: { path, line }, bun: unsupported });
  }
}

// All on the first line, so that the numbers of lines stay.
function bunLike(source) {
  let head = '';
  const uses = name => new RegExp(`(?<![.\\w$])${name}\\b`).test(source);
  const declares = name => new RegExp(`\\b(?:const|let|var|function|import)\\b[^=;()]*?(?<![.\\w$])${name}\\b`).test(source);
  if (uses('require') && !declares('require')) {
    head += "import { createRequire as ojCreateRequire } from 'node:module'; const require = ojCreateRequire(import.meta.url); ";
  }
  if (uses('__dirname') && !declares('__dirname')) head += 'const __dirname = import.meta.dirname; ';
  if (uses('__filename') && !declares('__filename')) head += 'const __filename = import.meta.filename; ';
  if (/\bimport\.meta\.(?:dir|file|path)\b/.test(source)) {
    head +=
      'import.meta.dir = import.meta.dirname; import.meta.path = import.meta.filename; ' +
      'import.meta.file = import.meta.filename.replace(/.*[\\\\/]/, ""); ';
  }
  return head + source;
}

/** A JSON text as a module: the whole as default, and what has a name by its name. */
export function jsonModule(text) {
  const value = JSON.parse(text);
  const names = value && typeof value === 'object' && !Array.isArray(value) ? Object.keys(value) : [];
  const aliases = names.map((name, i) => `v${i} as ${JSON.stringify(name)}`).filter((_, i) => names[i] !== 'default');
  const constants = names.map((name, i) => `const v${i} = all[${JSON.stringify(name)}];`).join('');
  return `const all = JSON.parse(${JSON.stringify(text)});${constants}export { all as default, ${aliases.join(', ')} };`;
}
