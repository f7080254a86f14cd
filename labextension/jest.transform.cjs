// TypeScript by esbuild (types are checked by tsc), style sheets and pictures as their text.
const { transformSync } = require('esbuild');

module.exports = {
  process(source, path) {
    if (/\.(css|svg|md)$/.test(path)) {
      return { code: `module.exports = ${JSON.stringify(source)};` };
    }
    const { code } = transformSync(source, { loader: /\.tsx?$/.exec(path)?.[0].slice(1) ?? 'js', format: 'cjs', target: 'es2022', sourcemap: 'inline', sourcefile: path });
    return { code };
  }
};
