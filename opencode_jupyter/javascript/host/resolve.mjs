// How a tool file's imports are found and read under Node.js: as Node.js does it, and where that fails as Bun does it
// (names without an ending, `.js` for a `.ts`), and last the libraries that OpenCode itself brings.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { extname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { track, urlOf } from './reload.mjs';
import { TYPESCRIPT, compile, jsonModule, needsBun } from './source.mjs';

const OURS = new URL('../', import.meta.url).href;
const PROVIDED = {
  '@opencode-ai/plugin': 'host/plugin.mjs',
  '@opencode-ai/plugin/tool': 'host/plugin.mjs',
  zod: 'vendor/zod.mjs',
  'zod/v4': 'vendor/zod.mjs',
  'zod/v3': 'vendor/zod-v3.mjs',
  'zod/mini': 'vendor/zod-mini.mjs',
  'zod/v4-mini': 'vendor/zod-mini.mjs',
  'zod/v4/mini': 'vendor/zod-mini.mjs'
};
const ENDINGS = ['.ts', '.tsx', '.mts', '.cts', '.js', '.mjs', '.cjs', '.json'];
const TWINS = { '.js': ['.ts', '.tsx'], '.mjs': ['.mts'], '.cjs': ['.cts'], '.jsx': ['.tsx'] };

let refuseBun = false;

/** Whether a file that needs Bun is refused before anything of it runs, because it can run there. */
export function setRefuseBun(value) {
  refuseBun = value;
}

registerHooks({ resolve, load });

function resolve(specifier, context, next) {
  if (!context.parentURL || context.parentURL.startsWith(OURS)) return next(specifier, context);
  let module;
  try {
    module = next(specifier, context);
  } catch (error) {
    const url = guess(specifier, context.parentURL);
    if (url) module = next(url, context);
    else if (Object.hasOwn(PROVIDED, specifier)) return { url: OURS + PROVIDED[specifier], shortCircuit: true };
    else throw explain(error, specifier);
  }
  if (!isProjects(module.url) || context.conditions?.includes('require')) return module;
  return { ...module, url: urlOf(module.url, context.parentURL) };
}

/** Whether a file belongs to the project: it may change, and is written for Bun. */
function isProjects(url) {
  return url.startsWith('file:') && !url.includes('/node_modules/') && !url.startsWith(OURS);
}

function guess(specifier, parent) {
  if (!/^(?:\.{1,2}(?:\/|$)|\/|file:)/.test(specifier) || !parent.startsWith('file:')) return null;
  const url = new URL(specifier, parent);
  url.search = url.hash = '';
  const path = fileURLToPath(url);
  const kind = extname(path);
  const twins = (TWINS[kind] ?? []).map(other => path.slice(0, -kind.length) + other);
  const inside = ENDINGS.map(ending => `${path.replace(/\/$/, '')}/index${ending}`);
  const file = [...twins, ...ENDINGS.map(ending => path + ending), ...inside].find(isFile);
  return file ? pathToFileURL(file).href : null;
}

function isFile(path) {
  return existsSync(path) && statSync(path).isFile();
}

function explain(error, specifier) {
  if (/^bun(?::|$)/.test(specifier)) {
    error.message = `"${specifier}" is a part of Bun, and this file was loaded by Node.js`;
    error.name = 'BunError';
  } else if (error.code === 'ERR_MODULE_NOT_FOUND' && !/^[./]|^file:/.test(specifier)) {
    const name = specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
    error.message += `; install it there: npm install ${name}`;
  }
  return error;
}

function load(url, context, next) {
  if (!url.startsWith('file:') || url.startsWith(OURS)) return next(url, context);
  const path = fileURLToPath(url);
  const kind = extname(path);
  const type = context.importAttributes?.type;
  const projects = isProjects(url);
  const required = context.conditions?.includes('require');
  if (projects) track(path);
  if (!required && (type === 'text' || (kind === '.txt' && !type))) {
    return moduleOf(`export default ${JSON.stringify(readFileSync(path, 'utf8'))};`);
  }
  if (kind === '.json') return type || required ? next(url, context) : moduleOf(jsonModule(readFileSync(path, 'utf8')));
  if (!TYPESCRIPT.has(kind) && !(projects && ['.js', '.mjs'].includes(kind))) return next(url, context);
  const text = readFileSync(path, 'utf8');
  if (projects && refuseBun && needsBun(text)) throw bunError();
  let compiled;
  try {
    compiled = compile(text, path);
  } catch (error) {
    throw error.bun && refuseBun ? bunError() : error;
  }
  return compiled ? { ...compiled, shortCircuit: true } : next(url, context);
}

function bunError() {
  return Object.assign(new Error('it needs Bun'), { name: 'BunError' });
}

function moduleOf(source) {
  return { format: 'module', source, shortCircuit: true };
}
