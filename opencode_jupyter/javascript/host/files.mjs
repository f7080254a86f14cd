// Tool files: what they export, and where their errors are.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { forgetLoaded, trackLoaded, unchangedFiles, urlOf, forgetIfChanged } from './reload.mjs';
import { prepareFor, schemaOf, shapeOf } from './schema.mjs';

const bun = Boolean(process.versions.bun);
const { provide, setRefuseBun } = await import(bun ? './bun.mjs' : './resolve.mjs');
const { compile, prepare } = await import('./source.mjs');
const files = new Map();

/** Run a file; its tools in the order of their exports' names, as OpenCode lists them. */
export async function load({ path, namespace, elsewhere }) {
  if (bun) provide(path);
  else {
    await prepare();
    setRefuseBun(elsewhere);
  }
  forgetIfChanged();
  try {
    const exports = exportsOf(await import(urlOf(pathToFileURL(path).href)));
    const tools = new Map();
    const listed = [];
    for (const [name, definition] of exports) {
      if (!isTool(definition)) continue;
      const id = name === 'default' ? namespace : `${namespace}_${name}`;
      const shape = shapeOf(definition.args);
      await prepareFor(shape);
      let schema;
      try {
        schema = schemaOf(shape);
      } catch (error) {
        throw new TypeError(`the arguments of ${id} have no JSON schema: ${error.message}`, { cause: error });
      }
      tools.set(name, { id, definition, shape });
      listed.push({ id, export: name, description: definition.description, schema, asks: definition.asks === true });
    }
    files.set(path, tools);
    if (bun) trackLoaded();
    return { tools: listed };
  } catch (error) {
    if (!bun && error instanceof SyntaxError) error.at ??= syntaxPlaceOf(error);
    forgetLoaded(); // a module that failed stays failed under its URL
    files.delete(path);
    throw error;
  }
}

/** Keep nothing of a file. */
export function forget({ path }) {
  files.delete(path);
  forgetLoaded();
  return {};
}

/** A loaded file's tool: `{id, definition, shape}`. */
export function find(path, name) {
  return files.get(path)?.get(name);
}

function exportsOf(module) {
  const exports = new Map(Object.entries(module));
  exports.delete('module.exports');
  const whole = exports.get('default');
  if (whole && typeof whole === 'object' && whole.__esModule) {
    exports.delete('default');
    for (const [name, value] of Object.entries(whole)) exports.set(name, value);
  } else if (whole && typeof whole === 'object' && !isTool(whole) && module['module.exports'] === whole) {
    for (const [name, value] of Object.entries(whole)) exports.set(name, value);
  }
  return exports;
}

function isTool(value) {
  return Boolean(value) && typeof value === 'object' && typeof value.execute === 'function' && typeof value.description === 'string';
}

/** Where a syntax error is that V8 gave no place for: found by having it look at each file alone. */
function syntaxPlaceOf(error) {
  if (placeOf(error).path) return undefined;
  for (const path of unchangedFiles()) {
    if (!/\.[cm]?[jt]sx?$/.test(path)) continue;
    const compiled = compile(readFileSync(path, 'utf8'), path);
    if (!compiled) continue;
    const kind = compiled.format === 'module' ? ['--input-type=module'] : [];
    const { status, stderr } = spawnSync(process.execPath, ['--check', ...kind, '-'], { input: compiled.source, timeout: 5000 });
    if (status) return { path, line: Number(/^\[stdin\]:(\d+)/m.exec(String(stderr))?.[1]) || undefined };
  }
  return undefined;
}

/** Where an error of loading comes from: `{path, line}`, as far as that is known. */
export function placeOf(error) {
  if (error?.at) return error.at;
  if (error?.position?.file) return { path: error.position.file, line: error.position.line };
  const stack = String(error?.stack ?? '');
  const ours = new URL('../', import.meta.url).href;
  const frame = bun ? /(?:\(|at )(\/[^()\n]+?):(\d+)(?::\d+)?(?=[\s)]|$)/gm : /(file:\/\/[^\s()]+?):(\d+)(?::\d+)?(?=[\s)]|$)/gm;
  for (const [, place, line] of stack.matchAll(frame)) {
    const url = (bun ? pathToFileURL(place).href : place).replace(/(?:\?|%3F).*/, '');
    if (url.startsWith(ours)) continue;
    return { path: fileURLToPath(url), line: Number(line) };
  }
  return {};
}
