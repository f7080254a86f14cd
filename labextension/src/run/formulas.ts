/** Formulas in a model's text: TeX, which the page's typesetter draws where it has one. */

import { bridge } from '../kernel/messages';

/** The class of what holds a formula with its delimiters. */
export const FORMULA = 'oc-formula';

/** Has the formulas below `words` typeset once they are in sight: what is not in the page cannot be measured. */
export function typesetFormulas(words: HTMLElement): void {
  const formulas = words.querySelectorAll<HTMLElement>(`.${FORMULA}`);
  if (formulas.length && bridge()?.typeset) {
    const observer = new IntersectionObserver(entries => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) {
        observer.disconnect();
        formulas.forEach(formula => bridge()?.typeset?.(formula));
      }
    });
    observer.observe(words);
  }
}
