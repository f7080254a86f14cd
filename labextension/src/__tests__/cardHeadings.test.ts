import { CARD_MIME } from '../card/types';
import { skipCardHeadings } from '../notebook/cardHeadings';
import { RUN_MIME } from '../run/types';

interface Model {
  type: string;
  outputs?: { length: number; get(at: number): unknown };
}

class Cell {
  constructor(readonly model: Model) {}
  getHeadings(): Promise<string[]> {
    return Promise.resolve(['looked']);
  }
}

const cell = (...bundles: Record<string, unknown>[]): Cell =>
  new Cell({ type: 'code', outputs: { length: bundles.length, get: at => ({ data: bundles[at] }) } });

test('a cell with nothing but cards is not searched for headings; any other is', async () => {
  const card = { [CARD_MIME]: {}, 'text/html': '<b>x</b>' };
  skipCardHeadings([new Cell({ type: 'markdown' }), cell(card)] as never);
  skipCardHeadings([cell(card)] as never);
  await expect(cell(card, { [RUN_MIME]: {}, 'text/html': '<b>x</b>' }).getHeadings()).resolves.toEqual([]);
  await expect(cell(card, { 'text/html': '<h1>x</h1>' }).getHeadings()).resolves.toEqual(['looked']);
  await expect(cell().getHeadings()).resolves.toEqual(['looked']);
  await expect(new Cell({ type: 'markdown' }).getHeadings()).resolves.toEqual(['looked']);
});
