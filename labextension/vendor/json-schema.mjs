// JSON schemas of Zod 3's types, which Zod 4 can't make; and the check of arguments whose types are JSON schemas.
export { zodToJsonSchema } from 'zod-to-json-schema';
export { Ajv2020 } from 'ajv/dist/2020.js';
