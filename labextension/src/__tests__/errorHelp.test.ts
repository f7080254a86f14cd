/** What the documentation says of an error's code. */

import page from '../../../docs/errors.md';
import { sectionOf } from '../viewer/errorHelp';

describe('the section of a code', () => {
  test('every code of the page has one, without its heading and without links', () => {
    const codes = [...page.matchAll(/^### (OJ-\S+)$/gm)].map(match => match[1]);
    expect(codes.length).toBeGreaterThan(30);
    for (const code of codes) {
      const section = sectionOf(page, code);
      expect(section.length).toBeGreaterThan(40);
      expect(section).not.toMatch(/^#|\]\(/m);
    }
  });

  test('a code is not taken for a longer one, nor a heading of another kind for a code', () => {
    const markdown = '# Errors\n\n## Calls\n\n### OJ-tool-long\n\nLong.\n\n### OJ-tool\n\nSee [rules](a.md#b).\n';
    expect(sectionOf(markdown, 'OJ-tool')).toBe('See rules.');
    expect(sectionOf(markdown, 'OJ-unknown')).toBe('');
  });
});
