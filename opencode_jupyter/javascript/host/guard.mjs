// Keeps one tool's trouble from ending the process, which all tools share.
import { AsyncLocalStorage } from 'node:async_hooks';

/** The call whose code runs; `fail` ends it with an error. */
export const current = new AsyncLocalStorage();

process.exit = code => {
  const status = code ?? process.exitCode ?? 0;
  const error = new Error(`it tried to end the process (process.exit(${status}))`);
  error.name = 'ExitError';
  current.getStore()?.fail(error);
  throw error;
};

process.on('uncaughtException', error => {
  const call = current.getStore();
  if (call) call.fail(error);
  else console.error(error);
});

// A promise nobody waits for: Node.js would end, and with it every other call.
process.on('unhandledRejection', error => {
  console.error(error);
});
