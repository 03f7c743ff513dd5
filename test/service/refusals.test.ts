/** The log names the caller of each refused request, and no caller floods it. */
import { CatalogError } from "@tiltyard/protocol";
import { afterEach, describe, expect, test, vi } from "vitest";
import { generateApiKey } from "../../service/auth/api-key.ts";
import { createTestApp } from "../support/app.ts";
import { startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("a refused request is logged with its caller, its API key, its operation and the object", async () => {
  const admin = "bootstrap-key-of-this-test-0123456789";
  const program = startProgram(["service/main.ts", "serve"], {
    TILTYARD_DATA_DIR: temporaryFolder("tiltyard-refusals-"),
    TILTYARD_PORT: "0",
    TILTYARD_BOOTSTRAP_API_KEY: admin,
  });
  const url = /at (http:\S+)/.exec(await program.printed("curl"))?.[1] ?? "";
  const post = async (path: string, key: string, body: object = {}) => {
    const headers = { "content-type": "application/json", "x-api-key": key };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, body: (await response.json()) as { key: string; api_key_id: string } };
  };
  const grant = { namespace: ["mine"], role: "writer" };
  const { body: own } = await post("/management/v1/api_key/create", admin, { principal: "mallory", grant });
  expect((await post("/v1/table/secret$t/describe", own.key)).status).toBe(403);
  const declared = { operations: [{ declare_table: { id: ["secret", "u"] } }] };
  expect((await post("/v1/table/batch-commit", own.key, declared)).status).toBe(403);
  await post("/management/v1/api_key/revoke", admin, { api_key_id: own.api_key_id });
  expect((await post("/v1/table/mine$t/describe", own.key)).status).toBe(401);
  program.child.kill("SIGTERM");
  const { stdout } = await program.finished;

  const lines = stdout.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
  const refusals = lines.filter(({ status }) => status === 401 || status === 403);
  const caller = { caller: "mallory", principal: "mallory", api_key_id: own.api_key_id };
  expect(refusals).toMatchObject([
    { ...caller, status: 403, operation: "DescribeTable", needed_role: "reader", needed_on: "secret$t" },
    { ...caller, status: 403, operation: "BatchCommitTables", needed_role: "writer", needed_on: "secret$u" },
    { caller: "127.0.0.1", api_key_id: own.api_key_id, status: 401, operation: "DescribeTable" },
  ]);
  expect(stdout).not.toContain(own.key);
});

describe("the refusals of a caller", () => {
  const refused = (authenticate: () => Promise<never>, lines: Record<string, unknown>[]) =>
    createTestApp({
      authenticator: authenticate,
      loggedRefusals: 2,
      log: { info: (line: object) => lines.push({ ...line }), error: () => {} } as never,
    });
  const { key } = generateApiKey();
  const init = { method: "POST", headers: { "x-api-key": key, "content-type": "application/json" }, body: "{}" };

  test("are logged up to a number per minute, and the next line counts the others", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const lines: Record<string, unknown>[] = [];
    const app = refused(async () => {
      throw new CatalogError("Unauthenticated", "the API key is not known or was revoked");
    }, lines);
    const send = async () => expect((await app.request("/v1/table/a$b/describe", init, {})).status).toBe(401);
    for (let count = 0; count < 7; count += 1) await send();
    expect(lines).toHaveLength(2);
    vi.advanceTimersByTime(60_000);
    await send();
    await send();
    expect(lines.map(({ omitted_refusals }) => omitted_refusals)).toEqual([undefined, undefined, 5, undefined]);
  });

  test("do not hide those of others, or requests that are allowed", async () => {
    const lines: Record<string, unknown>[] = [];
    let name = "mallory";
    const log = { info: (line: object) => lines.push({ ...line }), error: () => {} } as never;
    const authenticate = async () => ({ name, grants: [{ namespace: ["mine"], role: "reader" } as const] });
    const app = createTestApp({ authenticator: authenticate, loggedRefusals: 2, log });
    for (name of ["mallory", "mallory", "mallory", "alice"]) await app.request("/v1/table/a$b/describe", init, {});
    name = "mallory";
    await app.request("/v1/table/mine$b/describe", init, {});
    expect(lines.map(({ principal, status }) => [principal, status])).toEqual([
      ["mallory", 403],
      ["mallory", 403],
      ["alice", 403],
      ["mallory", 500],
    ]);
  });
});
