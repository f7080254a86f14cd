// Makes TypeScript's types of the card contract, what saved cards are checked by, and a table of built-in tools from what opencode_jupyter/jupyter/cards/contract_schema.py writes.
import { compile } from 'json-schema-to-typescript';
import { readFile, writeFile } from 'node:fs/promises';

const NOTE = '/** Generated from opencode_jupyter/jupyter/cards/contract.py; see contract.mjs. */';

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

/** The schema without what only people read. */
function bare(value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    return Array.isArray(value) ? value.map(bare) : value;
  }
  const { description, additionalProperties, minItems, maxItems, ...rest } = value;
  return Object.fromEntries(Object.entries(rest).map(([name, one]) => [name, name === 'properties' ? named(one) : bare(one)]));
}

/** The same of what stands under names, which may be words of a schema. */
function named(values) {
  return Object.fromEntries(Object.entries(values).map(([name, one]) => [name, bare(one)]));
}

/** Writes a file only where it changed: the build looks at its time. */
async function write(path, text) {
  if ((await readFile(path, 'utf8').catch(() => '')) !== text) {
    await writeFile(path, text);
  }
}

const { toolBodies, version, ...schema } = JSON.parse(await readFile('card.schema.json', 'utf8'));
const types = await compile(dialect(schema), 'CardContract', {
  bannerComment: NOTE,
  style: { singleQuote: true, printWidth: 120, trailingComma: 'none', arrowParens: 'avoid' }
});
await write('src/card/contract.ts', types);
await write('src/card/contractSchema.ts', `${NOTE}\nexport const SCHEMA = ${JSON.stringify(named(schema.$defs))};\n`);
await write(
  'src/card/toolBodies.ts',
  `/** Generated from the tools' manifests; see contract.mjs. The argument that the body of a \`%%tool\` cell fills. */
export const TOOL_BODIES: ReadonlyMap<string, string> = new Map(Object.entries(${JSON.stringify(toolBodies)}));\n`
);
await write('src/card/version.ts', `/** Generated from opencode_jupyter/_version.py; see contract.mjs. */\nexport const VERSION = ${JSON.stringify(version)};\n`);
