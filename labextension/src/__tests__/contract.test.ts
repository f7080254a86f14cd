import schema from '../../card.schema.json';
import { checkedPart, checkedRun } from '../card/savedCheck';

type Schema = {
  $ref?: string;
  type?: string;
  /** Only a live card shows it. */
  live?: boolean;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  prefixItems?: Schema[];
  properties?: Record<string, Schema>;
};

/** A value with every field that is saved; of alternatives the one at `choice`. */
function sample(shape: Schema, choice = 0, depth = 0): unknown {
  if (shape.$ref) {
    return sample((schema.$defs as Record<string, Schema>)[shape.$ref.split('/').pop() as string], choice, depth);
  }
  if (shape.anyOf) {
    return sample(shape.anyOf[choice], choice, depth);
  }
  if (shape.const !== undefined || shape.enum) {
    return shape.const ?? shape.enum?.[0];
  }
  if (shape.prefixItems) {
    return shape.prefixItems.map(one => sample(one, choice, depth));
  }
  if (shape.type === 'array') {
    return [sample(shape.items as Schema, choice, depth)];
  }
  if (shape.type === 'object') {
    const fields = Object.entries(shape.properties ?? {}).filter(
      ([name, inner]) => !inner.live && (name !== 'children' || depth < 2)
    );
    return Object.fromEntries(fields.map(([name, inner]) => [name, sample(inner, choice, depth + 1)]));
  }
  return { string: 'text', integer: 7, number: 7, boolean: true }[shape.type as string];
}

const definition = (name: 'CardPart' | 'RunPart', choice = 0): unknown => sample(schema.$defs[name] as Schema, choice);

describe('a saved card keeps every field of the contract', () => {
  test('a call', () => {
    expect(checkedPart(definition('CardPart'))).toEqual(definition('CardPart'));
  });

  test.each([0, 1])('a run with items of kind %i', choice => {
    expect(checkedRun(definition('RunPart', choice))).toEqual(definition('RunPart', choice));
  });
});
