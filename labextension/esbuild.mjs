// Bundles the live card's one ES module, with its style sheet inside, into the Python package.
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
  entryPoints: ['src/widget.ts'],
  bundle: true,
  minify: true,
  charset: 'utf8',
  format: 'esm',
  target: 'es2020',
  outfile: '../opencode_jupyter/static/card.js',
  plugins: [minifiedText],
  logLevel: 'info'
});
