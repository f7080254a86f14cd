// Load a project's changed modules again. Node.js loads a module once per URL, so each URL of a project's file carries a
// number; it goes up when a loaded file has changed, or when one is to be run again. Files loaded at one number share what
// they import.
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const OURS = fileURLToPath(new URL('../', import.meta.url));
const MARK = 'oj';
const stamps = new Map();
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
  stamps.set(path, stamp(path));
}

/** The files that were read and are what they were. */
export function unchangedFiles() {
  return [...stamps].filter(([path, known]) => stamp(path) === known).map(([path]) => path);
}

/** Have everything loaded again. */
export function forgetLoaded() {
  number += 1;
  for (const key of Object.keys(cache)) if (isProjects(key)) delete cache[key];
  stamps.clear();
}

/** Remember what was loaded: under Bun, which has no hook for it. */
export function trackLoaded() {
  for (const key of Object.keys(cache)) if (isProjects(key)) track(key.replace(/\?.*/, ''));
}

function isProjects(path) {
  return !/[\\/]node_modules[\\/]/.test(path) && !path.startsWith(OURS);
}

/** Have everything loaded again if a file has changed since it was read. */
export function forgetIfChanged() {
  for (const [path, known] of stamps) {
    if (stamp(path) !== known) {
      forgetLoaded();
      return;
    }
  }
}

/** A file's URL with the number of who imports it, or the current one. */
export function urlOf(url, parent) {
  const numbered = new URL(url);
  if (numbered.search) return url;
  const inherited = parent?.startsWith('file:') ? new URL(parent).searchParams.get(MARK) : null;
  numbered.searchParams.set(MARK, inherited ?? String(number));
  return numbered.href;
}
