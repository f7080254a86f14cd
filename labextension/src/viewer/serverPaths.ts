/** Where on the server a path of the kernel's machine may be. */

/**
 * The places below the server's root that `path` may mean, the likeliest first.
 *
 * @param path - A path of the kernel's machine; a relative one counts from the notebook or a folder above it.
 * @param root - The server's root as the page knows it; below a home folder it begins with `~`.
 * @param folder - The notebook's folder on the server.
 */
export function candidates(path: string, root: string, folder: string): string[] {
  const plain = path.replace(/\\/g, '/');
  if (!/^(?:\/|[A-Za-z]:\/)/.test(plain)) {
    const parts = folder.split('/').filter(Boolean);
    return [...parts.map((_, index) => [...parts.slice(0, parts.length - index), plain].join('/')), plain];
  }
  const base = root.replace(/\\/g, '/').replace(/\/+$/, '');
  if (!base.startsWith('~')) {
    return plain.startsWith(`${base}/`) ? [plain.slice(base.length + 1)] : [];
  }
  const tail = `${base.slice(1)}/`;
  const at = plain.indexOf(tail);
  return at < 0 ? [] : [plain.slice(at + tail.length)];
}
