/** Parts in every state, for the tests. */

import type { CardAsk, CardPart, CardQuestions, CardState, CardUi } from '../card/types';

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
  question: 'Edit this file?',
  patterns: ['src/clean.py'],
  always: ['src/*', 'tests/*'],
  diff: DIFF,
  path: 'src/clean.py',
  rule: { permission: 'edit', pattern: '*', action: 'ask', origin: "this notebook's default" },
  asked: 1_000_000
};

export const QUESTION: CardQuestions = {
  id: 'que_1',
  digest: 'sha',
  questions: [
    {
      question: 'Which database should the cache use?',
      header: 'Database',
      options: [
        { label: 'SQLite (Recommended)', description: 'one file, nothing to install' },
        { label: 'PostgreSQL', description: 'a server' }
      ]
    },
    {
      question: 'Which formats are written?',
      header: 'Formats',
      options: [
        { label: 'CSV', description: '' },
        { label: 'Parquet', description: 'needs pyarrow' }
      ],
      multiple: true
    }
  ],
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

/** A batch with a call in each state, one asking for a permission, one asking a question. */
export function batch(): CardPart {
  const child = (n: number, tool: string, state: Partial<CardState>, ui: Partial<CardUi>): CardPart =>
    part(state, ui, { id: `prt_c${n}`, callID: `call_c${n}`, tool });
  return part(
    { input: { tool_calls: [] } },
    {
      label: '5 calls',
      children: [
        child(1, 'read', { status: 'completed', output: 'a\nb', time: { start: 1_000_000, end: 1_000_002 } }, { label: 'data/prices.csv' }),
        child(2, 'read', { status: 'error', error: 'File not found: data/missing.csv.' }, { label: 'data/missing.csv', outcome: 'failed' }),
        child(3, 'bash', {}, { label: 'Runs the tests', tail: 'test_clean.py ...' }),
        child(4, 'edit', {}, { label: 'src/clean.py', ask: ASK }),
        child(5, 'question', {}, { label: 'Database, Formats', question: { ...QUESTION, asked: 1_002_000 } })
      ]
    },
    { tool: 'batch' }
  );
}
