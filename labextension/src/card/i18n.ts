/**
 * The words that people read, through JupyterLab's translator where there is one. The call forms are JupyterLab's own
 * (`trans.__`, `trans._n`), so that its tools find the texts; a live card is a bundle of its own and has no access to
 * JupyterLab, so the translator is found through the page.
 */

/** Of JupyterLab's `TranslationBundle` what is used here. `%1`, `%2`, … in a text stand for the arguments. */
export interface Translation {
  __(text: string, ...args: unknown[]): string;
  _n(singular: string, plural: string, n: number, ...args: unknown[]): string;
}

const KEY = '__opencode_jupyter_trans';
type PageGlobals = { [KEY]?: Translation };

/** Puts the arguments in the place of `%1`, `%2`, …; those of `_n` begin with the number. */
export function fill(text: string, args: unknown[]): string {
  return text.replace(/%(\d+)/g, (whole, number: string) => {
    const at = Number(number) - 1;
    return at < args.length ? String(args[at]) : whole;
  });
}

const english: Translation = {
  __: (text, ...args) => fill(text, args),
  _n: (singular, plural, n, ...args) => fill(n === 1 ? singular : plural, [n, ...args])
};

const current = (): Translation => (globalThis as PageGlobals)[KEY] ?? english;

/** The texts in the language of the page. */
export const trans: Translation = {
  __: (text, ...args) => current().__(text, ...args),
  _n: (singular, plural, n, ...args) => current()._n(singular, plural, n, ...args)
};

/** Has all texts of this page go through `translation` from now on; without one they are English. */
export function setTranslation(translation: Translation | undefined): void {
  (globalThis as PageGlobals)[KEY] = translation;
}
