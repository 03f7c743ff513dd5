import { resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createServiceProcess, type ServiceProcess } from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const requestsPerSecond = 50;

let database: TestDatabase;
/** Two replicas over one database. The clock of the second one is three hours ahead. */
let replicas: readonly [exact: ServiceProcess, ahead: ServiceProcess];

beforeAll(async () => {
  database = await createTestDatabase();
  const settings = {
    TILTYARD_DATABASE_URL: database.url,
    TILTYARD_WAREHOUSE: temporaryFolder("tiltyard-clocks-"),
    TILTYARD_RATE_LIMIT: String(requestsPerSecond),
    TILTYARD_DROP_RETENTION: "30m",
  };
  const aheadSettings = {
    NODE_OPTIONS: `--import=${resolve("test/support/ahead-clock.ts")}`,
    TEST_CLOCK_AHEAD_MS: String(3 * hourMs),
  };
  replicas = [
    createServiceProcess(undefined, settings),
    createServiceProcess(undefined, { ...settings, ...aheadSettings }),
  ];
  for (const replica of replicas) await replica.start();
});
afterAll(async () => {
  for (const replica of replicas) await replica.kill("SIGTERM");
  await database.drop();
});

async function ask(replica: ServiceProcess, path: string, init: RequestInit = {}) {
  const answer = await fetch(replica.url() + path, { method: "POST", headers: { "x-api-key": replica.key }, ...init });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text === "" ? {} : JSON.parse(text) };
}

test("a token is valid at all replicas although their clocks differ by hours", async () => {
  const tokens: string[] = [];
  for (const replica of replicas) {
    const form = { grant_type: "client_credentials", client_secret: replica.key };
    const { body } = await ask(replica, "/oauth/token", { headers: {}, body: new URLSearchParams(form) });
    tokens.push(body.access_token);
  }
  for (const replica of replicas)
    for (const token of tokens) {
      const headers = { authorization: `Bearer ${token}` };
      expect((await ask(replica, "/v1/namespace/$/exists", { headers })).status).toBe(200);
    }
});

test("an attempt keeps its key and its time at all replicas although their clocks differ by hours", async () => {
  const [exact, ahead] = replicas;
  await exact.declare("timed");
  const timed = { body: JSON.stringify({ timeout_seconds: 3_600 }) };
  const job = `/management/v1/job/${(await ask(exact, "/management/v1/table/timed/compact", timed)).body.job_id}`;
  await ask(exact, `${job}/attempt/claim`, { body: JSON.stringify({ after: 0, platform: {} }) });
  const { key } = (await ask(exact, `${job}/key/create`, { body: JSON.stringify({ attempt: 1 }) })).body;
  const own = { headers: { "x-api-key": key }, body: JSON.stringify({ attempt: 1, claim: "process" }) };
  expect(await ask(exact, `${job}/attempt/start`, own)).toMatchObject({ body: { job: { status: "Running" } } });
  for (const replica of [ahead, exact, ahead])
    expect(await ask(replica, `${job}/attempt/heartbeat`, own)).toMatchObject({ body: { job: { status: "Running" } } });
});

test("a table has the time of its drop on the clock of the database", async () => {
  const [exact, ahead] = replicas;
  await exact.declare("dropped");
  await ask(ahead, "/v1/table/dropped/drop");
  for (const replica of replicas) {
    const { body } = await ask(replica, "/management/v1/namespace/$/dropped_table/list", { method: "GET" });
    const [{ dropped_at_millis, kept_until_millis }] = body.dropped_tables;
    expect(Math.abs(dropped_at_millis - Date.now())).toBeLessThan(minuteMs);
    expect(kept_until_millis - dropped_at_millis).toBe(30 * minuteMs);
  }
});

test("a caller over a rate limit waits for a second although the clock of a replica is hours ahead", async () => {
  const [exact, ahead] = replicas;
  await ask(ahead, "/v1/namespace/$/exists");
  const flood = Array.from({ length: 2 * requestsPerSecond }, () => ask(exact, "/v1/namespace/$/exists"));
  const refused = (await Promise.all(flood)).filter(({ status }) => status === 503);
  expect(new Set(refused.map(({ headers }) => headers.get("retry-after")))).toEqual(new Set(["1"]));
});
