// Running calls: the check of arguments, the tool's context, its result.
import { find } from './files.mjs';
import { current } from './guard.mjs';
import { parse } from './schema.mjs';
import { send } from './protocol.mjs';

const MAX_OUTPUT = 128 * 2 ** 20; // characters
const UPDATE = 50; // milliseconds between two updates of a running call; Python shows no more
const running = new Map();

/** Run a tool. */
export async function call({ id, path, export: name, args, context }) {
  const tool = find(path, name);
  if (!tool) throw new Error(`${path} has no such tool any more`);
  const controller = new AbortController();
  const entry = { controller, asks: new Map() };
  const ended = new Promise((_, fail) => (entry.fail = fail));
  entry.updates = updatesOf(id, entry.fail);
  running.set(id, entry);
  try {
    const { value, issues } = await Promise.race([parse(tool.shape, args), ended]);
    if (issues.length) return { issues: JSON.stringify(issues, (_, v) => (typeof v === 'bigint' ? String(v) : v), 2) };
    controller.signal.throwIfAborted();
    if (process.cwd() !== context.directory) process.chdir(context.directory);
    const { definition } = tool;
    const work = current.run(entry, async () => definition.execute(value, contextOf(id, context, entry)));
    return { result: resultOf(tool.id, await Promise.race([work, ended])) };
  } finally {
    entry.updates.flush();
    running.delete(id);
  }
}

/** Abort a call that nobody waits for any more. */
export function abort({ call: id }) {
  const entry = running.get(id);
  if (!entry) return;
  const reason = new DOMException('The call was stopped', 'AbortError');
  entry.controller.abort(reason);
  for (const { reject } of entry.asks.values()) reject(reason);
}

/** Settle a permission request with a person's or a rule's decision. */
export function answer({ call: id, ask, error }) {
  const request = running.get(id)?.asks.get(ask);
  if (!request) return;
  running.get(id).asks.delete(ask);
  if (!error) request.resolve();
  else request.reject(Object.assign(new Error(error.message), { name: error.name, feedback: error.feedback, ojAsk: ask }));
}

let lastAsk = 0;

/** What a tool shows while it runs: at most one message each `UPDATE`, the last one always. */
function updatesOf(id, fail) {
  let latest, timer;
  let sent = 0;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (!latest) return;
    const message = { id, event: 'metadata', title: latest.title, metadata: latest.metadata };
    latest = undefined;
    sent = performance.now();
    try {
      send(message);
    } catch (error) {
      fail(error);
    }
  };
  const put = update => {
    latest = update;
    const wait = sent + UPDATE - performance.now();
    if (wait <= 0) flush();
    else timer ??= setTimeout(flush, wait);
  };
  return { flush, put };
}

function contextOf(id, fields, { controller, asks, updates }) {
  return {
    ...fields,
    abort: controller.signal,
    metadata(input) {
      updates.put({ title: input?.title, metadata: input?.metadata });
    },
    ask(input) {
      const { permission, patterns, always, metadata } = input ?? {};
      return new Promise((resolve, reject) => {
        if (typeof permission !== 'string' || !Array.isArray(patterns)) {
          throw new TypeError('ask() needs a permission and a list of patterns');
        }
        if (controller.signal.aborted) throw controller.signal.reason;
        updates.flush();
        const ask = (lastAsk += 1);
        asks.set(ask, { resolve, reject });
        send({ id, event: 'ask', ask, permission, patterns, always: always ?? [], metadata: metadata ?? {} });
      });
    }
  };
}

function resultOf(id, outcome) {
  if (typeof outcome === 'string') return resultOf(id, { output: outcome });
  if (outcome && typeof outcome === 'object' && typeof outcome.output === 'string') {
    const { title, output, metadata, attachments } = outcome;
    if (output.length > MAX_OUTPUT) throw new RangeError(`the ${id} tool returned more than 128 Mi characters`);
    return { title, output, metadata, attachments };
  }
  const kind = outcome === null ? 'null' : Array.isArray(outcome) ? 'an array' : typeof outcome;
  throw new TypeError(
    `the ${id} tool returned ${kind}; a tool must return a string (String(x), JSON.stringify(x)) ` +
      'or an object with output (a string), title and metadata'
  );
}
