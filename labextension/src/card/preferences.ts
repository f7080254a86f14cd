/**
 * How a person likes cards and panels. JupyterLab's settings (`schema/settings.json`) fill them; a live card, a bundle
 * of its own, finds them through the page. Without the extension the defaults hold.
 */

export interface Preferences {
  /** Changes side by side or in one column; `auto`: by the room there is. */
  diffStyle: 'auto' | 'unified' | 'split';
  /** Several settled calls in a row are folded into one line. */
  foldCalls: boolean;
  /** Lines of an output that a card shows before it scrolls. */
  outputLines: number;
  /** A notification when a request waits out of sight. */
  notify: boolean;
  /** Lines of whole outputs are wrapped. */
  wrapLines: boolean;
  /** Suggestions and hover texts on `%tool` lines, while the kernel is busy too. */
  completions: boolean;
}

export const DEFAULTS: Readonly<Preferences> = {
  diffStyle: 'auto',
  foldCalls: true,
  outputLines: 20,
  notify: true,
  wrapLines: false,
  completions: true
};

/** Dispatched on `globalThis.document` after a change. */
export const CHANGED = 'opencode-jupyter-preferences';
const KEY = '__opencode_jupyter_preferences';
type PageGlobals = { [KEY]?: Partial<Preferences> };

/** What holds now. */
export function preferences(): Preferences {
  return { ...DEFAULTS, ...(globalThis as PageGlobals)[KEY] };
}

/** Takes over `chosen`; what has another type than its default is left out. */
export function setPreferences(chosen: Record<string, unknown>): void {
  const valid = Object.entries(DEFAULTS).filter(([name, value]) => typeof chosen[name] === typeof value);
  (globalThis as PageGlobals)[KEY] = Object.fromEntries(valid.map(([name]) => [name, chosen[name]]));
  document.dispatchEvent(new Event(CHANGED));
}
