// The process in which a workspace's JavaScript and TypeScript tools run.
import './guard.mjs';
import { abort, answer, call } from './calls.mjs';
import { forget, load, placeOf } from './files.mjs';
import { listen, send } from './wire.mjs';

const ASKED = { load, forget, call, ping: () => ({}) };
const TOLD = { abort, answer };

async function take(order) {
  if (TOLD[order.do]) {
    TOLD[order.do](order);
    return;
  }
  const { id } = order;
  try {
    const reply = { id, ...(await ASKED[order.do](order)) };
    send(reply);
  } catch (error) {
    send({ id, error: told(error, order.do === 'load') });
  }
}

function told(given, loading) {
  const error = given instanceof AggregateError && loading ? (given.errors[0] ?? given) : given;
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
  const why = cause instanceof Error ? cause.message || cause.code : '';
  return why && !String(message).includes(why) ? `${message} (${why})` : message;
}

function inspect(value) {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeof value;
  }
}

listen(take, () => process.reallyExit(0));
