// Which copies of a project's modules count. Node.js loads a module once per URL, so each URL of a project's file carries a
// number; it goes up when a loaded file has changed, or when one is to be run again. Files loaded at one number share what
// they import.
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';

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
  for (const path of seen.keys()) delete cache[path];
  seen.clear();
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
