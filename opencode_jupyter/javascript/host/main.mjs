// The process in which a workspace's JavaScript and TypeScript tools run.
import './guard.mjs';
import { abort, answer, call } from './calls.mjs';
import { forget, load, placeOf } from './files.mjs';
import { listen, send } from './protocol.mjs';

const REQUESTS = { load, forget, call, ping: () => ({}) };
const NOTIFICATIONS = { abort, answer };

async function handle(request) {
  const { id, method } = request;
  if (NOTIFICATIONS[method]) {
    NOTIFICATIONS[method](request);
    return;
  }
  try {
    const reply = { id, ...(await REQUESTS[method](request)) };
    send(reply);
  } catch (error) {
    send({ id, error: describe(error, method === 'load') });
  }
}

function describe(thrown, loading) {
  const error = thrown instanceof AggregateError && loading ? (thrown.errors[0] ?? thrown) : thrown;
  if (!(error instanceof Error) && typeof error?.message !== 'string') {
    return { name: 'Error', message: `it threw ${typeof error === 'string' ? error : inspect(error)}` };
  }
  const { stack, ojAsk } = error;
  const name = { BuildMessage: 'SyntaxError', ResolveMessage: 'Error' }[error.name] ?? error.name;
  const message = withCause(error);
  return { name: String(name), message, stack: String(stack ?? ''), ask: ojAsk, at: loading ? placeOf(error) : undefined };
}

// What went wrong with a fetch stands in its cause alone.
function withCause({ message, cause }) {
  const reason = cause instanceof Error ? cause.message || cause.code : '';
  return reason && !String(message).includes(reason) ? `${message} (${reason})` : message;
}

function inspect(value) {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeof value;
  }
}

listen(handle, () => process.reallyExit(0));
