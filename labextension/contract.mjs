// Makes TypeScript's types of the card contract from its JSON schema, which opencode_jupyter/jupyter/cards/contract_schema.py writes.
import { compile } from 'json-schema-to-typescript';
import { readFile, writeFile } from 'node:fs/promises';

const OUT = 'src/card/contract.ts';

/** The schema in the dialect of json-schema-to-typescript: its own word for tuples, nothing beside a reference. */
function dialect(value) {
  if (value === null || typeof value !== 'object') {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map(dialect);
  }
  const { $ref, prefixItems, ...rest } = value;
  const inner = Object.fromEntries(Object.entries(rest).map(([name, one]) => [name, dialect(one)]));
  if (prefixItems) {
    inner.items = dialect(prefixItems);
  }
  return $ref ? (Object.keys(inner).length ? { ...inner, allOf: [{ $ref }] } : { $ref }) : inner;
}

const schema = dialect(JSON.parse(await readFile('card.schema.json', 'utf8')));
const types = await compile(schema, 'CardContract', {
  bannerComment: '/** Generated from opencode_jupyter/jupyter/cards/contract.py; see contract.mjs. */',
  style: { singleQuote: true, printWidth: 120, trailingComma: 'none', arrowParens: 'avoid' }
});
// only where they changed: the build looks at the file's time
if ((await readFile(OUT, 'utf8').catch(() => '')) !== types) {
  await writeFile(OUT, types);
}
