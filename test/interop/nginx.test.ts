/** The catalog behind nginx, with the configuration of docs/operations/catalog.md. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { tableFromIPC } from "apache-arrow";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { unusedPort } from "../../client/unused-port.ts";
import { arrowStream, filmTable } from "../support/rows.ts";
import { createServiceProcess, type ServiceProcess } from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { prepareDebianProgram } from "../support/tools.ts";

const page = join(import.meta.dirname, "../../docs/operations/catalog.md");

let service: ServiceProcess;
let nginx: ChildProcess;
let port: number;
let accessLog: string;
beforeAll(async () => {
  service = createServiceProcess(undefined, { TILTYARD_TRUSTED_PROXIES: "1" });
  await service.start();
  port = await unusedPort();
  const folder = temporaryFolder("tiltyard-nginx-");
  accessLog = join(folder, "access.log");
  const [, shown = ""] = /^```nginx\n(.*?)^```$/ms.exec(readFileSync(page, "utf8")) ?? [];
  const server = shown
    .replace("127.0.0.1:2333", new URL(service.url()).host)
    .replace("listen 443 ssl", `listen 127.0.0.1:${port}`)
    .replaceAll(/ssl_.*;/g, "");
  const file = join(folder, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; user root; pid ${folder}/pid; error_log ${folder}/error.log; events {}
     http { log_format requests "$request"; access_log ${accessLog} requests; ${server} }`,
  );
  nginx = spawn(prepareDebianProgram("nginx", "the interop tests"), ["-c", file], { stdio: "inherit" });
  const ready = async () => (await fetch(`http://127.0.0.1:${port}/health/ready`)).ok;
  await vi.waitUntil(() => ready().catch(() => false), { timeout: 60_000 });
});
afterAll(async () => {
  nginx.kill();
  await once(nginx, "exit");
  await service[Symbol.asyncDispose]();
});

function post(path: string, body: string | Uint8Array): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers: { "x-api-key": service.key }, body });
}

test("passes many rows in both directions", async () => {
  const rows = 20_000;
  const films = filmTable(Array.from({ length: rows }, (_, id) => ({ id, title: "x".repeat(1_000) })));
  const created = await post("/v1/table/films/create", arrowStream([films]));
  expect(created.status).toBe(200);
  const answer = await post("/v1/table/films/query", JSON.stringify({ k: rows, vector: {} }));
  expect(tableFromIPC(new Uint8Array(await answer.arrayBuffer())).numRows).toBe(rows);
});

test("passes the rows of concurrent clients over connections that it reuses", async () => {
  const query = () => post("/v1/table/films/query", JSON.stringify({ k: 1_000, vector: {} }));
  const statuses = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const answer = await query();
      await answer.arrayBuffer();
      return answer.status;
    }),
  );
  expect(new Set(statuses)).toEqual(new Set([200]));
});

/** The headers and the body of requests whose end two programs may see at different places. INNER is another request. */
const ambiguous: readonly string[] = [
  "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nINNER",
  "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nINNER",
  "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\nINNER",
  "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\nINNER",
  "Transfer-Encoding:\tchunked\r\nContent-Length: LENGTH\r\n\r\n0\r\n\r\nINNER",
  "Transfer-Encoding: chunked, identity\r\nContent-Length: LENGTH\r\n\r\n0\r\n\r\nINNER",
  "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\nContent-Length: LENGTH\r\n\r\n0\r\n\r\nINNER",
  "Transfer_Encoding: chunked\r\nContent-Length: LENGTH\r\n\r\n0\r\n\r\nINNER",
  "X: y\rTransfer-Encoding: chunked\r\nContent-Length: LENGTH\r\n\r\n0\r\n\r\nINNER",
  "X: y\nTransfer-Encoding: chunked\r\nContent-Length: LENGTH\r\n\r\n0\r\n\r\nINNER",
  "Content-Length: 0\r\nContent-Length: LENGTH\r\n\r\nINNER",
  "Content-Length: 0, LENGTH\r\n\r\nINNER",
  "Content-Length: +LENGTH\r\n\r\nINNER",
  "Content-Length: 0x0\r\n\r\nINNER",
  "Transfer-Encoding: chunked\r\n\r\n00000000000000000\r\n\r\nINNER",
  "Transfer-Encoding: chunked\r\n\r\n0;a=\n\r\n\r\nINNER",
  "Transfer-Encoding: chunked\r\n\r\n0\n\nINNER",
  "Transfer-Encoding: chunked\r\n\r\n1\r\nxx0\r\n\r\nINNER",
  "Expect: 100-continue\r\nContent-Length: LENGTH\r\n\r\nINNER",
  "Connection: close, content-length\r\nContent-Length: LENGTH\r\n\r\nINNER",
  "Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: LENGTH\r\n\r\nINNER",
];

test("does not let the catalog see a request in the body of another one", async () => {
  await Promise.all(
    ambiguous.map(async (request, index) => {
      const inner = `POST /v1/namespace/inner_${index}/create HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${service.key}\r\nContent-Length: 2\r\n\r\n{}`;
      const body = request.slice(request.indexOf("\r\n\r\n") + 4).replace("INNER", inner);
      const sent = request.replace("INNER", inner).replaceAll("LENGTH", `${Buffer.byteLength(body)}`);
      const socket = connect(port, "127.0.0.1").on("error", () => undefined);
      const answered = text(socket).catch(() => "");
      socket.write(`POST /v1/namespace/outer/exists HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${service.key}\r\n${sent}`);
      socket.end();
      await answered;
    }),
  );
  const seen = readFileSync(accessLog, "latin1");
  for (const [index, request] of ambiguous.entries()) {
    const { status } = await post(`/v1/namespace/inner_${index}/exists`, "{}");
    // A request that nginx itself has seen is no hidden one.
    if (!seen.includes(`/inner_${index}/create`)) expect([request, status]).toEqual([request, 404]);
  }
});
