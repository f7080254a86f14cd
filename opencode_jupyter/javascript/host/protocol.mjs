// The connection to Python: one JSON text a line, requests on descriptor 4, replies and events of calls on descriptor 3.
// Neither is stdin or stdout, so that nothing a tool, or a program it starts, reads or prints can get in between.
import { createReadStream, createWriteStream } from 'node:fs';
import { Socket } from 'node:net';

const REQUESTS = 4;
const REPLIES = 3;
const bun = Boolean(process.versions.bun);
const output = bun
  ? createWriteStream('', { fd: REPLIES })
  : new Socket({ fd: REPLIES, readable: false, writable: true });
output.on('error', () => process.reallyExit(0)); // Python is gone

/** Send a reply or an event; `message` must be JSON. */
export function send(message) {
  let text = JSON.stringify(message);
  // half a surrogate pair is no text that Python could write down
  if (text.includes('\\ud')) text = text.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\ufffd');
  output.write(text + '\n');
}

/** Begin to receive requests; `end` is called when no more can come. */
export function listen(handle, end) {
  const input = bun
    ? createReadStream('', { fd: REQUESTS })
    : new Socket({ fd: REQUESTS, readable: true, writable: false });
  let pieces = [];
  input.on('data', chunk => {
    let start = 0;
    for (let stop; (stop = chunk.indexOf(10, start)) >= 0; start = stop + 1) {
      pieces.push(chunk.subarray(start, stop));
      const line = Buffer.concat(pieces).toString('utf8');
      pieces = [];
      handle(JSON.parse(line));
    }
    if (start < chunk.length) pieces.push(chunk.subarray(start));
  });
  input.on('end', end);
  input.on('error', end);
}
