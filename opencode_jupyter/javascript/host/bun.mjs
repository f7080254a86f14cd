// Under Bun: only what OpenCode itself brings has to be found; the rest Bun does.
import { plugin } from 'bun';

const OURS = new URL('../', import.meta.url).pathname;
const PROVIDED = { '@opencode-ai/plugin': 'host/plugin.mjs', '@opencode-ai/plugin/tool': 'host/plugin.mjs' };
for (const [name, file] of [['zod', 'zod'], ['zod/v4', 'zod'], ['zod/v3', 'zod-v3'], ['zod/mini', 'zod-mini']]) {
  PROVIDED[name] = `vendor/${file}.mjs`;
}

plugin({
  name: 'opencode-jupyter',
  setup(build) {
    build.onResolve({ filter: /^(?:@opencode-ai\/plugin|zod)(?:\/|$)/ }, ({ path, importer }) => {
      try {
        return { path: Bun.resolveSync(path, importer.replace(/[^/]*$/, '')) };
      } catch {
        return Object.hasOwn(PROVIDED, path) ? { path: OURS + PROVIDED[path] } : undefined;
      }
    });
  }
});

/** Nothing is refused here. */
export function setRefuseBun() {}
