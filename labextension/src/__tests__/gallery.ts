/** Parts in every state, for the tests. */

import type { CardAsk, CardPart, CardState, CardUi } from '../card/token';

export const DIFF = `--- a/src/clean.py
+++ b/src/clean.py
@@ -12,2 +12,3 @@
 df = pd.read_csv(path)
-df = df.dropna()
+df = df.dropna(subset=["price"])
+df["price"] = df["price"].astype(float)
`;

export const ASK: CardAsk = {
  id: 'per_1',
  digest: 'sha',
  permission: 'edit',
  patterns: ['src/clean.py'],
  always: ['src/*', 'tests/*'],
  diff: DIFF,
  path: 'src/clean.py',
  rule: { permission: 'edit', pattern: '*', action: 'ask', origin: "this notebook's default" },
  asked: 1_000_000
};

export function part(state: Partial<CardState> = {}, ui: Partial<CardUi> = {}, rest: Partial<CardPart> = {}): CardPart {
  return {
    v: 1,
    id: 'prt_1',
    callID: 'call_1',
    sessionID: 'ses_1',
    messageID: 'msg_1',
    tool: 'edit',
    state: { status: 'running', input: { filePath: 'src/clean.py' }, time: { start: 1_000_000 }, ...state },
    ui: { label: 'src/clean.py', by: 'user', waited: 0, decisions: [], ...ui },
    ...rest
  };
}
