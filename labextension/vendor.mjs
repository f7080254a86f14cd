// Bundles the libraries that the worker for JavaScript tool files needs into the Python package, one file per entry, and
// writes down whose they are. A tool file that has these libraries installed beside it uses its own. Zod is of the very
// version that OpenCode's plugin package asks for, so that the schemas are the same.
import { build } from 'esbuild';
import { access, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const outdir = '../opencode_jupyter/javascript/vendor';

await rm(outdir, { recursive: true, force: true });
const { metafile } = await build({
  entryPoints: ['zod', 'zod-v3', 'zod-mini', 'json-schema', 'typescript'].map(name => `vendor/${name}.mjs`),
  bundle: true,
  splitting: true,
  minify: true,
  // tools tell schemas and errors by the names of their classes
  keepNames: true,
  charset: 'utf8',
  format: 'esm',
  platform: 'node',
  target: 'node22',
  outdir,
  outExtension: { '.js': '.mjs' },
  metafile: true,
  legalComments: 'none',
  logLevel: 'warning'
});

const packages = new Set();
for (const output of Object.values(metafile.outputs)) {
  for (const [input, { bytesInOutput }] of Object.entries(output.inputs)) {
    const found = bytesInOutput && /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input);
    if (found) packages.add(found[0]);
  }
}
const texts = [];
for (const folder of [...packages].sort()) {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  texts.push(`${name} ${version} (${license})\n\n${await licence(folder)}`);
}
await writeFile(`${outdir}/LICENSES.txt`, texts.join(`\n${'-'.repeat(80)}\n\n`));

async function licence(folder) {
  for (const name of ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENCE']) {
    const path = join(folder, name);
    if (await access(path).then(() => true, () => false)) return (await readFile(path, 'utf8')).trim() + '\n';
  }
  throw new Error(`no licence text in ${folder}`);
}
