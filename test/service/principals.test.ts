import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { openStore } from "../../service/store/open.ts";
import { startTestCatalog, type TestCatalog, useCatalog } from "../support/catalog.ts";
import { createTestDatabase, executeSql } from "../support/database.ts";
import { arrowStream, createFilms, films } from "../support/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const listRoot = (catalog: TestCatalog, headers: Record<string, string>) =>
  catalog.fetch("/v1/namespace/$/list", { headers }).then(({ status }) => status);

const requestToken = (catalog: TestCatalog, key?: string) =>
  catalog.fetch("/oauth/token", {
    method: "POST",
    body: new URLSearchParams({ grant_type: "client_credentials", ...(key !== undefined && { client_secret: key }) }),
    headers: {},
  });

async function tokenOf(catalog: TestCatalog, key: string): Promise<string> {
  const { access_token } = (await (await requestToken(catalog, key)).json()) as { access_token: string };
  return access_token;
}

const wholeKey = /^tiltyard_[0-9a-f]{12}_[\w-]{43}$/;

describe("the file of the development key", () => {
  test.each([
    ["empty", ""],
    ["blank", " \n"],
    ["cut in its random part", "tiltyard_0123456789ab_ab"],
    ["cut after 40 of 65 characters", "tiltyard_0123456789ab_abcdefghijklmnopqrs"],
    ["short", "secret"],
    ["full of zero bytes", "\0".repeat(65)],
  ])("is replaced when it is %s: no caller becomes admin", async (_, content) => {
    const folder = temporaryFolder("tiltyard-damaged-");
    const file = join(folder, "development.key");
    writeFileSync(file, content, { mode: 0o600 });
    const catalog = await startTestCatalog({ TILTYARD_DATA_DIR: folder });
    for (const key of ["", " ", content.trim()].filter((each) => !each.includes("\0"))) {
      expect(await listRoot(catalog, { "x-api-key": key })).toBe(401);
      expect((await requestToken(catalog, key)).status).toBe(401);
    }
    expect((await requestToken(catalog)).status).toBe(401);
    const replaced = readFileSync(file, "utf8");
    expect(replaced).toMatch(wholeKey);
    expect(statSync(file).mode & 0o077).toBe(0);
    expect(await listRoot(catalog, { "x-api-key": replaced })).toBe(200);
    await catalog.stop();
  });

  test("is replaced in the database, too, when an earlier start installed an empty key", async () => {
    const { database, url } = await createTestDatabase();
    await (await openStore(database))[Symbol.asyncDispose]();
    const empty = createHash("sha256").update("").digest("hex");
    await executeSql(
      database,
      `insert into api_keys (id, principal, hash, created_at_millis) values ('development', 'development', '${empty}', 1)`,
    );
    await executeSql(database, "insert into grants (principal, namespace, role) values ('development', '', 'admin')");
    const catalog = await startTestCatalog({ TILTYARD_DATABASE_URL: url });
    expect(await listRoot(catalog, { "x-api-key": "" })).toBe(401);
    expect((await requestToken(catalog, "")).status).toBe(401);
    await catalog.stop();
  });

  test("stops the start with an error that names it when it cannot be read", async () => {
    const folder = temporaryFolder("tiltyard-folder-");
    mkdirSync(join(folder, "development.key"));
    await expect(startTestCatalog({ TILTYARD_DATA_DIR: folder })).rejects.toThrow(/EISDIR/);
  });
});

describe("a token of the catalog", () => {
  const catalog = useCatalog();
  const bearer = (token: string) => listRoot(catalog, { authorization: `Bearer ${token}` });

  test("ends with its key", async () => {
    const { key, api_key_id } = (
      await catalog.call("createApiKey", { principal: "leaver", grant: { namespace: [], role: "reader" } })
    ).body;
    const token = await tokenOf(catalog, key);
    expect(await bearer(token)).toBe(200);
    await catalog.call("revokeApiKey", { api_key_id });
    expect(await bearer(token)).toBe(401);
  });

  test("expires after an hour, and gets no further token", async () => {
    const token = await tokenOf(catalog, await catalog.keyFor("hourly", { $: "reader" }));
    expect((await requestToken(catalog, token)).status).toBe(401);
    expect(await listRoot(catalog, { "x-api-key": token })).toBe(401);
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      vi.advanceTimersByTime(3_599_000);
      expect(await bearer(token)).toBe(200);
      vi.advanceTimersByTime(1_000);
      expect(await bearer(token)).toBe(401);
    } finally {
      vi.useRealTimers();
    }
  });

  test("does not become valid for longer when the clock is set back", async () => {
    const token = await tokenOf(catalog, await catalog.keyFor("early", { $: "reader" }));
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      vi.setSystemTime(Date.now() - 24 * 3_600_000);
      expect(await bearer(token)).toBe(401);
    } finally {
      vi.useRealTimers();
    }
  });

  test("cannot be created outside of the catalog, not even by the holder of the bootstrap key", async () => {
    const { SignJWT } = await import("jose");
    const claims = { iss: "tiltyard-development", aud: "tiltyard", sub: "bootstrap", exp: 4_000_000_000 };
    const forged = await new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from(catalog.adminKey));
    expect(await bearer(forged)).toBe(401);
    expect(await bearer(catalog.adminKey)).toBe(401);
  });

  test("is one of a thousand at most for each key", async () => {
    const key = await catalog.keyFor("greedy", { $: "reader" });
    const first = await tokenOf(catalog, key);
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      vi.advanceTimersByTime(1_000);
      for (let batch = 0; batch < 10; batch += 1)
        await Promise.all(Array.from({ length: 100 }, () => requestToken(catalog, key)));
      // With PostgreSQL, concurrent requests do not see each other's tokens.
      await requestToken(catalog, key);
      expect(await bearer(first)).toBe(401);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("a key of the settings", () => {
  const stopped: TestCatalog[] = [];
  afterEach(async () => {
    for (const each of stopped.splice(0)) await each.stop();
  });

  test("stays revoked after restarts, with its tokens, also when the settings had another one in the meantime", async () => {
    const { url } = await createTestDatabase();
    const dataDir = temporaryFolder("tiltyard-revoked-");
    const start = async (bootstrap: string) => {
      const catalog = await startTestCatalog({
        TILTYARD_DATABASE_URL: url,
        TILTYARD_DATA_DIR: dataDir,
        TILTYARD_BOOTSTRAP_API_KEY: bootstrap,
      });
      stopped.push(catalog);
      return catalog;
    };
    const first = await start("bootstrap-key-number-one-012345");
    const token = await tokenOf(first, first.adminKey);
    expect((await first.call("revokeApiKey", { api_key_id: "bootstrap" })).status).toBe(200);
    expect((await first.call("revokeApiKey", { api_key_id: "bootstrap" })).status).toBe(401);
    const second = await start("bootstrap-key-number-one-012345");
    expect(await listRoot(second, { "x-api-key": second.adminKey })).toBe(401);
    expect(await listRoot(second, { authorization: `Bearer ${token}` })).toBe(401);
    const third = await start("bootstrap-key-number-two-012345");
    expect(await listRoot(third, { "x-api-key": third.adminKey })).toBe(200);
    expect(await listRoot(third, { "x-api-key": first.adminKey })).toBe(401);
    expect(await listRoot(third, { authorization: `Bearer ${token}` })).toBe(401);
    const fourth = await start("bootstrap-key-number-one-012345");
    expect(await listRoot(fourth, { "x-api-key": first.adminKey })).toBe(401);
    expect(await listRoot(fourth, { "x-api-key": third.adminKey })).toBe(200);
  });

  test("prevents the start if it is the key of another principal", async () => {
    const settings = {
      TILTYARD_DATABASE_URL: (await createTestDatabase()).url,
      TILTYARD_DATA_DIR: temporaryFolder("tiltyard-known-"),
    };
    const before = await startTestCatalog(settings);
    stopped.push(before);
    const { body } = await before.call("createApiKey", { principal: "ada" });
    const start = startTestCatalog({ ...settings, TILTYARD_RUNNER_API_KEY: body.key });
    await expect(start).rejects.toThrow(
      `The API key of runner is already the key ${body.api_key_id} of ada. Configure another one`,
    );
    expect((await before.call("namespaceExists", { id: [] }, { key: body.key })).status).toBe(403);
  });

  test("is rejected when it is the development key and an OIDC issuer is configured", async () => {
    const { url } = await createTestDatabase();
    const dataDir = temporaryFolder("tiltyard-oidc-");
    const settings = { TILTYARD_DATABASE_URL: url, TILTYARD_DATA_DIR: dataDir };
    const before = await startTestCatalog(settings);
    const headers = { "x-api-key": readFileSync(join(dataDir, "development.key"), "utf8") };
    expect(await listRoot(before, headers)).toBe(200);
    stopped.push(before);
    const oidc = { TILTYARD_AUTH: "oidc", TILTYARD_OIDC_ISSUER: "https://issuer.example", TILTYARD_OIDC_AUDIENCE: "t" };
    const after = await startTestCatalog({ ...settings, ...oidc });
    stopped.push(after);
    expect(await listRoot(after, headers)).toBe(401);
    expect(await listRoot(after, { "x-api-key": after.adminKey })).toBe(200);
  });
});

describe("the owner of an API key", () => {
  const catalog = useCatalog();

  test.each(["oidc:ada", "job:ns$1 for ada", "unknown"])("cannot have the name %s", async (principal) => {
    expect((await catalog.call("createApiKey", { principal })).error).toMatchObject({
      status: 400,
      detail: expect.stringContaining("principal: "),
    });
  });
});

describe("the key of a job", () => {
  const catalog = useCatalog({ TILTYARD_RUNNER_API_KEY: "key-of-the-runner-0123456789" });
  const rootRunner = "key-of-the-runner-0123456789";

  /** Opens a job of a principal on a new table with a first attempt. */
  async function openJob(opener: string) {
    const table = await createFilms(catalog);
    const [namespace = ""] = table;
    const grants = { [namespace]: "writer", secret: "reader" } as const;
    const { body } = await catalog.call("createApiKey", { principal: opener });
    for (const [id, role] of Object.entries(grants))
      await catalog.call("putGrant", { id: [id], principal: opener, role });
    const opened = await catalog.call("openJob", { id: table, column: "title" }, { key: body.key });
    const id = opened.body.job_id.split("$");
    await catalog.call("claimJobAttempt", { id, after: 0, platform: {} });
    return { id, table, namespace, apiKeyId: body.api_key_id };
  }
  const createKey = async (id: string[], runner: string) =>
    catalog.call("createJobKey", { id, attempt: 1 }, { key: runner });
  const statusOf = async (key: string, id: string[]) => (await catalog.call("describeTable", { id }, { key })).status;

  /** Opens a refresh of a new view of a table in another namespace. @returns The key's status for tables. */
  async function openRefresh(createView: (id: string[], source: string[]) => Promise<unknown>) {
    const [source, other] = [await createFilms(catalog), await createFilms(catalog)];
    const namespace = crypto.randomUUID();
    await catalog.call("createNamespace", { id: [namespace] });
    const view = [namespace, "view"];
    await createView(view, source);
    const opener = crypto.randomUUID();
    const of = (id: string[]) => id.slice(0, -1).join("$");
    const key = await catalog.keyFor(opener, { [namespace]: "writer", [of(source)]: "reader", [of(other)]: "reader" });
    const opened = await catalog.call("refreshMaterializedView", { id: view }, { key });
    const id = opened.body.job_id.split("$");
    await catalog.call("claimJobAttempt", { id, after: 0, platform: {} });
    return { id, view, source, other, opener, namespaceOfSource: of(source) };
  }

  test.each<[string, (id: string[], source: string[]) => Promise<unknown>]>([
    [
      "that this catalog created",
      (id, source) =>
        catalog.call("createMaterializedView", {
          id,
          kind: "query",
          source_query: JSON.stringify({ source_table: source.join("$") }),
          output_schema: Buffer.from(arrowStream([])).toString("base64"),
        }),
    ],
    [
      "that Geneva itself created",
      async (id, [namespace = "", table = ""]) => {
        await catalog.call("createTable", { id }, { body: arrowStream(films) });
        const metadata = { "geneva::view::base_table": table, "geneva::view::namespace_path": namespace };
        await catalog.call("updateTableSchemaMetadata", { id, metadata });
      },
    ],
  ])("reads the source of a view %s, where its opener and its runner may, and no other table", async (_, create) => {
    const { id, view, source, other, opener, namespaceOfSource } = await openRefresh(create);
    const { key } = (await createKey(id, rootRunner)).body;
    expect([await statusOf(key, view), await statusOf(key, source), await statusOf(key, other)]).toEqual([
      200, 200, 403,
    ]);
    const local = await catalog.keyFor(`local-${opener}`, { [view[0] ?? ""]: "runner" });
    const { key: ofLocal } = (await createKey(id, local)).body;
    expect([await statusOf(ofLocal, view), await statusOf(ofLocal, source)]).toEqual([200, 403]);
    await catalog.call("revokeGrant", { id: namespaceOfSource.split("$"), principal: opener });
    const { key: afterwards } = (await createKey(id, rootRunner)).body;
    await expect.poll(() => statusOf(afterwards, source)).toBe(403);
  });

  test.each(["runner", "admin"] as const)(
    "stays in the namespace whose %s created it for a job of the root admin",
    async (role) => {
      const { namespace, table } = await openJob("bob");
      const { job_id } = (await catalog.call("compactTable", { id: table })).body;
      const id = job_id.split("$");
      await catalog.call("claimJobAttempt", { id, after: 0, platform: {} });
      const local = await catalog.keyFor(`local-${role}`, { [namespace]: role });
      const { key } = (await createKey(id, local)).body;
      expect(await statusOf(key, table)).toBe(200);
      for (const outside of [[], ["secret"], [namespace]])
        expect((await catalog.call("describeNamespace", { id: outside }, { key })).status).toBe(403);
    },
  );

  test.each<[string, (job: Awaited<ReturnType<typeof openJob>>) => Promise<unknown>]>([
    ["the opener's key is revoked", ({ apiKeyId }) => catalog.call("revokeApiKey", { api_key_id: apiKeyId })],
    [
      "the opener's role is revoked",
      ({ namespace }) => catalog.call("revokeGrant", { id: [namespace], principal: "eve" }),
    ],
    [
      "the opener becomes a reader",
      ({ namespace }) => catalog.call("putGrant", { id: [namespace], principal: "eve", role: "reader" }),
    ],
    ["the runner's role is revoked", () => catalog.call("revokeGrant", { id: [], principal: "temporary" })],
  ])("stops working within a second when %s", async (_, revoke) => {
    const job = await openJob("eve");
    const runner = await catalog.keyFor("temporary", { $: "runner" });
    const { key } = (await createKey(job.id, runner)).body;
    expect(await statusOf(key, job.table)).toBe(200);
    await revoke(job);
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + 1_000);
    onTestFinished(() => clock.mockRestore());
    expect(await statusOf(key, job.table)).toBe(401);
    const again = await createKey(job.id, rootRunner);
    expect(again.status).toBe(_.startsWith("the opener") ? 403 : 201);
  });

  test("cannot drop, rename, replace or change the records of other jobs", async () => {
    await catalog.call("createNamespace", { id: ["__system"], mode: "ExistOk" });
    const records = ["__system", "geneva_jobs"];
    await catalog.call("declareTable", { id: records });
    const { id } = await openJob("dan");
    const { key } = (await createKey(id, rootRunner)).body;
    const refused = [
      ["dropTable", {}],
      ["deregisterTable", {}],
      ["renameTable", { new_table_name: "mine" }],
      ["updateTable", { updates: [["status", "'DONE'"]] }],
      ["deleteFromTable", { predicate: "true" }],
      ["restoreTable", { version: 1 }],
      ["batchDeleteTableVersions", { ranges: [{ start_version: 0, end_version: -1 }] }],
      ["alterTableDropColumns", { columns: ["status"] }],
      ["updateTableSchemaMetadata", { metadata: {} }],
      ["createTableBranch", { name: "b" }],
      ["putTablePolicy", {}],
    ] as const;
    for (const [operation, request] of refused)
      expect([operation, (await catalog.call(operation, { id: records, ...request }, { key })).status]).toEqual([
        operation,
        403,
      ]);
    const replace = { id: ["__system", "geneva_jobs"], mode: "Overwrite" };
    expect((await catalog.call("createTable", replace, { key, body: new Uint8Array() })).status).toBe(403);
    expect((await catalog.call("createNamespace", { id: ["__system"], mode: "Overwrite" }, { key })).status).toBe(403);
    // Geneva sends these requests in a job.
    expect((await catalog.call("createNamespace", { id: ["__system"], mode: "ExistOk" }, { key })).status).toBe(200);
    expect((await catalog.call("describeTable", { id: records }, { key })).status).toBe(200);
    expect((await catalog.call("declareTable", { id: ["__system", "geneva_errors"] }, { key })).status).toBe(200);
  });
});
