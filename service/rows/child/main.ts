/**
 * The child process in which the Lance library runs. It answers the catalog's calls over a Unix socket, and ends with the
 * catalog. docs/internals/rows.md describes it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { constants, setPriority } from "node:os";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CatalogError } from "@tiltyard/protocol";
import { ByteReader } from "../arrow/message-stream.ts";
import { type Call, callBytesHeader, type Failure } from "../call.ts";
import { createTables } from "./open-table.ts";
import { carryOut } from "./operations.ts";

const [socket, memoryBytes] = process.argv.slice(2);
if (socket === undefined || process.send === undefined) throw new Error("only the catalog starts this program");
// The catalog ends it: a signal to the whole group must not end calls that the catalog still waits for.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
process.once("disconnect", () => process.exit());
// Commits and listings go first.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

const tables = createTables(Number(memoryBytes));

/** Reads the call that a request begins with, and leaves the Arrow stream that follows. */
async function readCall(request: IncomingMessage) {
  const body = Readable.toWeb(request) as ReadableStream<Uint8Array>;
  const reader = new ByteReader(body);
  const bytes = Buffer.alloc(Number(request.headers[callBytesHeader]));
  await reader.fill(bytes);
  // Only the catalog connects, and it writes calls as they are typed.
  return { call: JSON.parse(bytes.toString("utf8")) as Call, rows: reader.rest() };
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { call, rows } = await readCall(request);
  const answer = await carryOut(tables, call, rows);
  if (!(answer instanceof ReadableStream)) {
    response.end(JSON.stringify(answer ?? null));
    return;
  }
  response.flushHeaders();
  await pipeline(Readable.fromWeb(answer as never), response).catch((error: unknown) => {
    if (!request.destroyed) process.stderr.write(`reading rows failed: ${error}\n`);
  });
}

function failureOf(error: unknown): Failure {
  if (error instanceof CatalogError) return { kind: error.kind, message: error.message };
  return { text: error instanceof Error ? error.message : String(error) };
}

const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
  serve(request, response).catch((error: unknown) => {
    if (response.headersSent) response.destroy();
    else response.writeHead(500).end(JSON.stringify(failureOf(error)));
  });
});
server.listen(socket, () => process.send?.("listening"));
