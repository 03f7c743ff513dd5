/**
 * The child process that runs the Lance library. It responds to the catalog's calls over a Unix socket and exits with
 * the catalog. docs/internals/rows.md describes it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { CatalogError, messageOf } from "@tiltyard/protocol";
import { ByteReader } from "./arrow/message-stream.ts";
import { createOpener } from "./open-table.ts";
import { execute, query } from "./operations.ts";
import { type Call, callBytesHeader, type Failure, failureTrailer } from "./wire.ts";

const [socket, memoryBytes] = process.argv.slice(2);
if (socket === undefined || process.send === undefined) throw new Error("only the catalog starts this program");
// Only the catalog stops the child: a signal to the whole process group must not interrupt calls that the catalog still
// waits for.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
process.once("disconnect", () => process.exit());

/**
 * The maximum length of the text of a failure, encoded within the 16 KiB that Node accepts as trailers. The library repeats
 * names and values of a request, and the catalog compares the text with patterns.
 */
const textLengthMax = 1_500;

const open = createOpener(Number(memoryBytes));

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const reader = new ByteReader(request);
  const bytes = Buffer.alloc(Number(request.headers[callBytesHeader]));
  await reader.fill(bytes);
  // Only the catalog connects, and it always writes valid calls.
  const call = JSON.parse(bytes.toString("utf8")) as Call;
  if (call.operation === "query") await sendRows(query(open, call), response);
  else response.end(JSON.stringify((await execute(open, call, reader)) ?? null));
}

/** Sends a file in pieces as they are read. A file of one piece has a content length. */
async function sendRows(pieces: AsyncGenerator<Uint8Array, undefined>, response: ServerResponse): Promise<void> {
  const [first, second] = [await pieces.next(), await pieces.next()];
  if (second.done) {
    response.end(first.value);
    return;
  }
  const all = async function* () {
    if (!first.done) yield first.value;
    yield second.value;
    yield* pieces;
  };
  const source = Readable.from(all());
  response.once("close", () => source.destroy());
  source.pipe(response, { end: false });
  try {
    await finished(source);
  } catch (error) {
    if (response.destroyed) return;
    // The status was already sent, so only a trailer can report the cause.
    response.addTrailers({ [failureTrailer]: encodeURIComponent(JSON.stringify(failureOf(error))) });
  }
  response.end();
}

function failureOf(error: unknown): Failure {
  if (error instanceof CatalogError) return { kind: error.kind, message: error.message };
  return { text: messageOf(error).slice(0, textLengthMax) };
}

const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
  serve(request, response).catch((error: unknown) => {
    if (response.headersSent) response.destroy();
    else response.writeHead(500).end(JSON.stringify(failureOf(error)));
  });
});
server.listen(socket, () => process.send?.("listening"));
