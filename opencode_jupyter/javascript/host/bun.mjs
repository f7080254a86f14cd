// Under Bun: only what OpenCode itself brings has to be found; the rest Bun does.
import { dirname } from 'node:path';
import { plugin } from 'bun';

const ours = () => import('./plugin.mjs');
const PROVIDED = {
  '@opencode-ai/plugin': ours,
  '@opencode-ai/plugin/tool': ours,
  zod: () => import('../vendor/zod.mjs'),
  'zod/v4': () => import('../vendor/zod.mjs'),
  'zod/v3': () => import('../vendor/zod-v3.mjs'),
  'zod/mini': () => import('../vendor/zod-mini.mjs')
};
const provided = new Set();

/** Have ready what a file can't find by itself. */
export function provide(path) {
  for (const [name, load] of Object.entries(PROVIDED)) {
    if (provided.has(name)) continue;
    try {
      Bun.resolveSync(name, dirname(path));
    } catch {
      provided.add(name);
      plugin({
        name,
        setup: build => build.module(name, async () => ({ exports: { ...(await load()) }, loader: 'object' }))
      });
    }
  }
}
