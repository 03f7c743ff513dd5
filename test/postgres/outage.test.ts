import { ErrorResponse } from "@tiltyard/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startCommitter } from "../support/committer.ts";
import { startPostgresProxy } from "../support/postgres-proxy.ts";
import { type PostgresServer, password, runSql, startPostgres } from "../support/postgres-server.ts";
import { runCatalogCommand, startProgram } from "../support/process.ts";
import { arrowStream, films } from "../support/rows.ts";
import { countAcknowledged, createServiceProcess, expectAllKept } from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const adminKey = "admin-key-of-the-outage-0123456789";
const crashes = 8;
/** The maximum number of commits before a crash. */
const commitsPerCrashMax = 20;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
  for (const statement of [
    "create database catalog",
    "create database shared",
    "create role stranger login password 'x'",
  ])
    await runSql(server.urlOf("postgres"), statement);
  await runSql(server.urlOf("shared"), "revoke create on schema public from public");
});
afterAll(() => server.destroy());

function settings(): Record<string, string> {
  return {
    TILTYARD_DATABASE_URL: server.urlOf("catalog"),
    TILTYARD_DATA_DIR: temporaryFolder("tiltyard-outage-"),
    TILTYARD_PORT: "0",
    TILTYARD_BOOTSTRAP_API_KEY: adminKey,
    TILTYARD_RATE_LIMIT: "1000",
  };
}

test("an outage of the database is answered with 503 and over when it is back, and loses nothing", async () => {
  const program = startProgram(["service/main.ts", "serve"], settings());
  const welcome = await program.printed("curl");
  const url = /at (http:\S+)/.exec(welcome)?.[1] ?? "";
  const get = (path: string) => fetch(url + path);
  const create = (name: string) =>
    fetch(`${url}/v1/namespace/${name}/create`, { method: "POST", headers: { "x-api-key": adminKey } });
  expect((await create("before")).status).toBe(200);

  const acknowledged: string[] = ["before"];
  for (const mode of ["fast", "immediate"] as const) {
    const load = Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const name = `${mode}_${index}`;
        const answer = await create(name);
        if (answer.status === 200) acknowledged.push(name);
        else expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
      }),
    );
    await server.stop(mode);
    await load;

    const refused = await create("meanwhile");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await refused.json()).toMatchObject({ type: "/errors/service-unavailable", code: 17 });
    expect((await get("/health/ready")).status).toBe(503);
    expect((await get("/health/live")).status).toBe(200);

    await server.start();
    await expect.poll(async () => (await get("/health/ready")).status).toBe(200);
    expect((await create(`after_${mode}`)).status).toBe(200);
  }

  for (const name of acknowledged) {
    const answer = await fetch(`${url}/v1/namespace/${name}/exists`, {
      method: "POST",
      headers: { "x-api-key": adminKey },
    });
    expect([name, answer.status]).toEqual([name, 200]);
  }
  program.child.kill("SIGTERM");
  const { code, stdout, stderr } = await program.finished;
  expect(code).toBe(0);
  expect(stdout).toContain("ECONNREFUSED");
  for (const secret of [password, encodeURIComponent(password), adminKey])
    expect(stdout + stderr).not.toContain(secret);
});

test("a service keeps the versions that it acknowledged when its database crashes in the middle of commits", async () => {
  await runSql(server.urlOf("postgres"), "create database commits");
  await using service = createServiceProcess(undefined, { TILTYARD_DATABASE_URL: server.urlOf("commits") });
  await service.start();
  const [own, shared] = [await service.declare("own"), await service.declare("shared")];
  const writers = [own, shared, shared].map((table, index) => ({
    table,
    committer: startCommitter(service, table, `writer ${index}`),
  }));
  for (let crash = 1; crash <= crashes; crash += 1) {
    const before = countAcknowledged(writers);
    const commits = Math.ceil(Math.random() * commitsPerCrashMax);
    await expect.poll(() => countAcknowledged(writers), { interval: 1 }).toBeGreaterThanOrEqual(before + commits);
    await server.stop("immediate");
    await server.start();
  }
  await Promise.all(writers.map(({ committer }) => committer.stop()));
  await expectAllKept(service, writers);
});

test("an insertion whose commit loses its answer is a conflict that names its transaction, so that no client repeats it", async () => {
  const database = new URL(server.urlOf("catalog"));
  await using proxy = await startPostgresProxy({ host: database.hostname, port: Number(database.port) });
  database.port = `${proxy.port}`;
  const program = startProgram(["service/main.ts", "serve"], { ...settings(), TILTYARD_DATABASE_URL: database.href });
  const url = /at (http:\S+)/.exec(await program.printed("curl"))?.[1] ?? "";
  const post = (path: string, body: string | Uint8Array<ArrayBuffer>, type: string) =>
    fetch(url + path, { method: "POST", headers: { "x-api-key": adminKey, "content-type": type }, body });
  const send = (operation: string) =>
    post(`/v1/table/lost/${operation}`, new Uint8Array(arrowStream(films)), "application/vnd.apache.arrow.stream");
  expect((await send("create")).status).toBe(200);

  proxy.breakAtCommitOf("table_versions");
  const answer = await send("insert");
  proxy.repair();
  const { error } = ErrorResponse.parse(await answer.json());
  expect({ status: answer.status, error }).toMatchObject({
    status: 409,
    error: expect.stringContaining("may be committed"),
  });
  const [, transaction] = /\(([^)]+)\)/.exec(error) ?? [];
  const described = await post(`/v1/transaction/${transaction}/describe`, "{}", "application/json");
  expect(await described.json()).toMatchObject({ status: "Succeeded", context: { operation: "InsertIntoTable" } });
  const counted = await post("/v1/table/lost/count_rows", "{}", "application/json");
  expect(await counted.json()).toBe(2 * films.length);
  program.child.kill("SIGTERM");
  await program.finished;
});

test("a service whose database is unavailable ends at its start, and says why without the password", async () => {
  const away = { ...settings(), TILTYARD_DATABASE_URL: server.urlOf("catalog").replace(/:\d+\//, ":1/") };
  const { code, stdout, stderr } = await runCatalogCommand(["serve"], away);
  expect(code).toBe(1);
  expect(stderr).toMatch(/The catalog cannot use its database at postgres:\/\/127\.0\.0\.1.*ECONNREFUSED/);
  expect(stderr).not.toContain("    at ");
  for (const secret of [password, encodeURIComponent(password)]) expect(stdout + stderr).not.toContain(secret);
});

test.each([
  [
    "a wrong password",
    (url: string) => url.replace(encodeURIComponent(password), "wrong-pass"),
    "password authentication failed",
  ],
  [
    "a database that is not there",
    (url: string) => url.replace("/catalog", "/nothing"),
    'database "nothing" does not exist',
  ],
  [
    "a user that may create no tables",
    (url: string) => Object.assign(new URL(url), { username: "stranger", password: "x", pathname: "/shared" }).href,
    "grant it CREATE on the schema public",
  ],
  [
    "a server that accepts only reads",
    (url: string) => `${url}?options=-c%20default_transaction_read_only%3Don`,
    "Connect to the primary server, because this one is read-only",
  ],
  ["a server that speaks no TLS", (url: string) => `${url}?sslmode=require`, "does not support SSL"],
])("%s is reported at the start, without the password", async (_, change, message) => {
  const changed = { ...settings(), TILTYARD_DATABASE_URL: change(server.urlOf("catalog")) };
  const { code, stdout, stderr } = await runCatalogCommand(["serve"], changed);
  expect(code).toBe(1);
  expect(stderr).toContain("The catalog cannot use its database at postgres://127.0.0.1");
  expect(stderr).toContain(message);
  expect(stderr).not.toContain("    at ");
  for (const secret of ["wrong-pass", password, encodeURIComponent(password)])
    expect(stdout + stderr).not.toContain(secret);
});
