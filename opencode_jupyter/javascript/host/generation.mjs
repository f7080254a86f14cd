// Which copies of a project's modules count. Node.js loads a module once per URL, so each URL of a project's file carries a
// number; it goes up when a loaded file has changed, or when one is to be run again. Files loaded at one number share what
// they import.
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const OURS = fileURLToPath(new URL('../', import.meta.url));
const MARK = 'oj';
const seen = new Map();
const { cache } = createRequire(import.meta.url);
let number = 1;

function stamp(path) {
  try {
    const { mtimeNs, size, ino } = statSync(path, { bigint: true });
    return `${mtimeNs}.${size}.${ino}`;
  } catch {
    return '';
  }
}

/** Remember a file that was read. */
export function track(path) {
  seen.set(path, stamp(path));
}

/** The files that were read and are what they were. */
export function read() {
  return [...seen].filter(([path, known]) => stamp(path) === known).map(([path]) => path);
}

/** Let everything be loaded anew. */
export function renew() {
  number += 1;
  for (const key of Object.keys(cache)) if (isProjects(key)) delete cache[key];
  seen.clear();
}

/** Remember what was loaded: under Bun, which has no hook that tells. */
export function trackLoaded() {
  for (const key of Object.keys(cache)) if (isProjects(key)) track(key.replace(/\?.*/, ''));
}

function isProjects(path) {
  return !/[\\/]node_modules[\\/]/.test(path) && !path.startsWith(OURS);
}

/** Let everything be loaded anew if a file is not what it was when it was read. */
export function refresh() {
  for (const [path, known] of seen) {
    if (stamp(path) !== known) {
      renew();
      return;
    }
  }
}

/** A file's URL with the number of who imports it, or the current one. */
export function marked(url, parent) {
  const made = new URL(url);
  if (made.search) return url;
  const inherited = parent?.startsWith('file:') ? new URL(parent).searchParams.get(MARK) : null;
  made.searchParams.set(MARK, inherited ?? String(number));
  return made.href;
}
