/**
 * Puts the halves of a saved card together: what differs at each run of a cell (ids and times) is in the output's
 * metadata, so that its data stays the same (`opencode_jupyter/jupyter/cards/saved_json.py`).
 */

/** Levels that are looked into; cards inside cards do not go deeper. */
const LEVELS = 40;

/** Whether `value` is an object with names. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `data` with what the output's `metadata` adds to it; as it is where that has nothing. */
export function joinSaved(data: unknown, metadata: unknown): unknown {
  const more = isRecord(metadata) ? metadata.opencode : undefined;
  if (!isRecord(data) || !isRecord(more)) {
    return data;
  }
  const { aliases, ...rest } = more;
  const ids = new Map(Object.entries(isRecord(aliases) ? aliases : {}));
  const long = (text: string): string => (text.includes('_…') ? text.replace(/\w+_…\d+/g, alias => idOf(ids.get(alias)) ?? alias) : text);
  return joined(ids.size ? walk(data, long, 0) : data, rest, 0);
}

const idOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

function walk(value: unknown, long: (text: string) => string, level: number): unknown {
  if (typeof value === 'string') {
    return long(value);
  }
  if (level >= LEVELS || typeof value !== 'object' || value === null) {
    return value;
  }
  return Array.isArray(value)
    ? value.map(item => walk(item, long, level + 1))
    : Object.fromEntries(Object.entries(value).map(([name, item]) => [long(name), walk(item, long, level + 1)]));
}

/** Two trees of one shape as one; where both have a value, that of `more`. */
function joined(data: unknown, more: unknown, level: number): unknown {
  if (level >= LEVELS) {
    return data;
  }
  if (isRecord(data) && isRecord(more)) {
    const names = [...new Set([...Object.keys(data), ...Object.keys(more)])];
    return Object.fromEntries(names.map(name => [name, joined(data[name], more[name], level + 1)]));
  }
  if (Array.isArray(data) && Array.isArray(more)) {
    const length = Math.max(data.length, more.length);
    return Array.from({ length }, (_, at) => joined(data[at], more[at], level + 1));
  }
  return more === undefined ? data : more;
}
