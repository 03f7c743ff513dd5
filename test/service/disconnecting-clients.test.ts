/** A client that disconnects is no error of the service, so the log has none at the level `error`. */
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { readConfig } from "../../service/config.ts";
import { createLog } from "../../service/log.ts";
import { type RunningService, startService } from "../../service/start.ts";
import { arrowStream, filmTable } from "../support/rows.ts";
import { rowsChildrenOf } from "../support/rows-child.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const key = "key-of-the-disconnecting-client-01";
const log = createLog("silent");
let service: RunningService;
beforeAll(async () => {
  const settings = { TILTYARD_PORT: "0", TILTYARD_DATA_DIR: temporaryFolder("tiltyard-log-") };
  service = await startService(readConfig({ ...settings, TILTYARD_BOOTSTRAP_API_KEY: key }), log);
  const rows = arrowStream([filmTable(Array.from({ length: 20_000 }, (_, id) => ({ id, title: "x".repeat(1_000) })))]);
  const headers = { "x-api-key": key };
  expect((await fetch(`${service.url}/v1/table/films/create`, { method: "POST", headers, body: rows })).status).toBe(
    200,
  );
});
afterAll(() => service.stop());
afterEach(() => vi.restoreAllMocks());

/** Sends the beginning of a request, and disconnects when the service has sent something, or afterwards. */
async function disconnect(
  path: string,
  length: number,
  body: string | Uint8Array,
  after: "sending" | "data" | (() => Promise<void>),
) {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\ncontent-length: ${length}\r\n\r\n`);
  await new Promise<void>((resolve) => {
    if (after === "data") socket.once("data", () => resolve());
    socket.write(body, () => after !== "data" && resolve());
  });
  if (typeof after === "function") await after();
  socket.destroy();
}

const query = JSON.stringify({ k: 20_000, vector: {} });
test.each<[string, string, ...Parameters<typeof disconnect>]>([
  ["within a JSON body", "CreateNamespace", "/v1/namespace/half/create", 100, '{"properties":', "sending"],
  ["within rows", "InsertIntoTable", "/v1/table/films/insert", 9_999, arrowStream([]), "sending"],
  ["within an answer", "QueryTable", "/v1/table/films/query", query.length, query, "data"],
])("a client that disconnects %s is no error in the log", async (_, operation, ...request) => {
  const [error, warn, info] = [vi.spyOn(log, "error"), vi.spyOn(log, "warn"), vi.spyOn(log, "info")];
  await disconnect(...request);
  const logged = () => info.mock.calls.map(([line]) => line);
  await expect.poll(logged).toContainEqual(expect.objectContaining({ operation }));
  expect([error.mock.calls, warn.mock.calls]).toEqual([[], []]);
});

test.runIf(process.platform === "linux")("a merge whose client disconnects commits nothing later", async () => {
  const info = vi.spyOn(log, "info");
  const setTimer = vi.spyOn(globalThis, "setTimeout");
  const delays = () => setTimer.mock.calls.map(([, ms]) => ms);
  const body = arrowStream([{ id: 1, title: "Stalker" }]);
  const path = "/v1/table/films/merge_insert?on=id&when_matched_update_all=true";
  const children = rowsChildrenOf(process.pid);
  for (const child of children) process.kill(child, "SIGSTOP");
  // The catalog sets the deadline of a change when it calls the library, and that of a lost client when it notices that.
  await disconnect(path, body.length, body, () => expect.poll(delays).toContain(3_600_000));
  await expect.poll(delays).toContain(5_000);
  for (const child of children) process.kill(child, "SIGCONT");
  const ended = expect.objectContaining({ operation: "MergeInsertIntoTable", status: 400 });
  await expect.poll(() => info.mock.calls.map(([line]) => line)).toContainEqual(ended);
  const listed = await fetch(`${service.url}/v1/table/films/version/list`, {
    method: "POST",
    headers: { "x-api-key": key },
  });
  expect(await listed.json()).toMatchObject({ versions: [{ version: 1 }] });
});
