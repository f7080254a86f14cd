// What a tool file gets for "@opencode-ai/plugin" when its project has not installed it.
import * as zod from '../vendor/zod.mjs';

export function tool(definition) {
  return definition;
}

tool.schema = zod.z;
