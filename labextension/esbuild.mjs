// Bundles the live cards' ES modules, one for calls and one for runs, each with its style sheet inside, into the Python package.
import { build, transform } from 'esbuild';
import { readFile } from 'node:fs/promises';

const minifiedText = {
  name: 'css-as-text',
  setup(builder) {
    builder.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { loader: 'css', minify: true });
      return { contents: code.trim(), loader: 'text' };
    });
  }
};

await build({
  entryPoints: { card: 'src/widget.ts', run: 'src/widget_run.ts' },
  bundle: true,
  minify: true,
  charset: 'utf8',
  format: 'esm',
  target: 'es2020',
  outdir: '../opencode_jupyter/static',
  plugins: [minifiedText],
  logLevel: 'info'
});
