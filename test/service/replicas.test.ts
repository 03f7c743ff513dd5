import { existsSync, readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { finalName, pathOf, readText, stageManifest, uniqueName } from "../support/catalog.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type Program, startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const adminKey = "admin-key-of-the-replicas-0123456789";

interface Replica {
  readonly program: Program;
  readonly url: string;
}

let database: TestDatabase;
let warehouse: string;
let replicas: readonly Replica[];

/** Starts a replica. Replicas share the database, the warehouse and the bootstrap key, and have separate data directories. */
async function startReplica(): Promise<Replica> {
  const program = startProgram(["service/main.ts", "serve"], {
    TILTYARD_DATABASE_URL: database.url,
    TILTYARD_DATA_DIR: temporaryFolder("tiltyard-replica-"),
    TILTYARD_WAREHOUSE: warehouse,
    TILTYARD_PORT: "0",
    TILTYARD_LOG_LEVEL: "warn",
    TILTYARD_BOOTSTRAP_API_KEY: adminKey,
  });
  const url = /at (http:\S+)/.exec(await program.printed("curl"))?.[1] ?? "";
  return { program, url };
}

async function stopReplica({ program }: Replica): Promise<void> {
  program.child.kill("SIGTERM");
  expect((await program.finished).code).toBe(0);
}

async function post(replica: Replica, path: string, body: object = {}, headers = { "x-api-key": adminKey } as object) {
  const response = await fetch(replica.url + path, {
    method: "POST",
    headers: { ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: JSON.parse(text || "{}") as Record<string, unknown> };
}

function replica(index: number): Replica {
  const found = replicas[index % replicas.length];
  if (found === undefined) throw new Error("no replica runs");
  return found;
}

async function declare(body: object = {}) {
  const name = uniqueName("t");
  const { status, body: answer } = await post(replica(0), `/v1/table/${name}/declare`, body);
  expect(status).toBe(200);
  const { location } = answer as { location: string };
  return { id: [name], location, path: `/v1/table/${name}` };
}

const create = (on: Replica, table: { path: string }, version: number, manifest_path: string) =>
  post(on, `${table.path}/version/create`, { version, manifest_path, naming_scheme: "V2" });

beforeAll(async () => {
  database = await createTestDatabase();
  warehouse = temporaryFolder("tiltyard-warehouse-");
  // All replicas start concurrently over an empty database. Each finds it migrated, by itself or by another one.
  replicas = await Promise.all([startReplica(), startReplica(), startReplica()]);
});

afterAll(async () => {
  await Promise.all(replicas.map(stopReplica));
  await database.drop();
});

describe("replicas on one database", () => {
  test("refuse the next request after another one has revoked the role, or the key", async () => {
    const path = "/management/v1/namespace/$/grant";
    const principal = uniqueName("user");
    const grant = { namespace: [], role: "reader" };
    const { body } = await post(replica(0), "/management/v1/api_key/create", { principal, grant });
    const { key, api_key_id } = body as { key: string; api_key_id: string };
    const headers = { "x-api-key": key };
    const list = async () => (await fetch(`${replica(1).url}/v1/namespace/$/list`, { headers })).status;
    expect(await list()).toBe(200);
    expect((await post(replica(0), `${path}/revoke`, { principal })).status).toBe(200);
    expect(await list()).toBe(403);
    expect((await post(replica(2), `${path}/put`, { principal, role: "reader" })).status).toBe(200);
    expect(await list()).toBe(200);
    expect((await post(replica(0), "/management/v1/api_key/revoke", { api_key_id })).status).toBe(200);
    expect(await list()).toBe(401);
  });

  test("let one commit win of those of the same version through different ones", async () => {
    const table = await declare();
    for (let version = 1; version <= 5; version++) {
      const manifests = Array.from({ length: 9 }, () => stageManifest(table, version));
      const answers = await Promise.all(manifests.map((path, index) => create(replica(index), table, version, path)));
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(8).fill(409)]);
      for (const { status, body } of answers) if (status === 409) expect(body.code).toBe(14);
    }
    const { body } = await post(replica(1), `${table.path}/version/list`);
    expect(body.versions).toHaveLength(5);
  });

  test("lose no commit of writers that retry", async () => {
    const table = await declare();
    const [writers, commitsEach] = [6, 5];
    const write = async (writer: number) => {
      for (let done = 0; done < commitsEach; ) {
        const on = replica(writer + done);
        const latest = await post(on, `${table.path}/version/list?limit=1&descending=true`);
        const [highest] = latest.body.versions as { version: number }[];
        const version = (highest?.version ?? 0) + 1;
        const content = `${writer}.${done}`;
        const { status } = await create(on, table, version, stageManifest(table, version, { content }));
        if (status === 200) done += 1;
        else expect(status).toBe(409);
      }
    };
    await Promise.all(Array.from({ length: writers }, (_, index) => write(index)));
    const contents = Array.from({ length: writers * commitsEach }, (_, index) =>
      readText(`/${pathOf(table)}/_versions/${finalName(index + 1)}`),
    );
    expect(new Set(contents).size).toBe(writers * commitsEach);
    // Only the staged manifests of losers remain.
    expect(readdirSync(`/${pathOf(table)}/_versions`).filter((name) => /\.manifest$/.test(name))).toHaveLength(30);
  });

  test("create a tag once for concurrent requests, and serialize its moves", async () => {
    const table = await declare();
    for (const version of [1, 2]) await create(replica(0), table, version, stageManifest(table, version));
    const all = (change: "create" | "update") =>
      Promise.all(
        Array.from({ length: 9 }, (_, index) =>
          post(replica(index), `${table.path}/tags/${change}`, { tag: "t", version: 1 + (index % 2) }),
        ),
      );
    const made = await all("create");
    expect(made.map(({ status }) => status).toSorted()).toEqual([200, ...Array(8).fill(409)]);
    for (const { status, body } of made) if (status === 409) expect(body.code).toBe(9);
    expect((await all("update")).map(({ status }) => status)).toEqual(Array(9).fill(200));
  });

  test("overwrite and drop a namespace in which others create tables", async () => {
    const path = `/v1/namespace/${uniqueName("busy")}`;
    await post(replica(0), `${path}/create`);
    const table = path.replace("namespace", "table");
    const declareAll = async (on: Replica) => {
      for (let index = 0; index < 40; index += 1)
        expect((await post(on, `${table}$${uniqueName("t")}/declare`)).status).toBe(200);
    };
    const overwriteAll = async (on: Replica) => {
      for (let index = 0; index < 10; index += 1)
        expect((await post(on, `${path}/create`, { mode: "Overwrite" })).status).toBe(200);
    };
    await Promise.all([0, 1, 2].flatMap((index) => [declareAll(replica(index)), overwriteAll(replica(index))]));
    const [dropped, late] = await Promise.all([
      post(replica(0), `${path}/drop`, { behavior: "Cascade" }),
      post(replica(1), `${table}$late/declare`),
    ]);
    expect(dropped.status).toBe(200);
    expect([200, 404]).toContain(late.status);
    expect((await post(replica(2), `${path}/exists`)).status).toBe(404);
  });

  test("do not place tables at or below each other's locations", async () => {
    const folder = uniqueName("shared");
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        post(replica(index), `/v1/table/${uniqueName("t")}/declare`, {
          location: [folder, `${folder}/below`, `${folder}/below/that`][index % 3],
        }),
      ),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(11);
  });

  test("create nothing in a namespace that another one drops", async () => {
    for (let round = 0; round < 5; round++) {
      const name = uniqueName("ns");
      await post(replica(0), `/v1/namespace/${name}/create`);
      const [declared, dropped] = await Promise.all([
        post(replica(1), `/v1/table/${name}$t/declare`),
        post(replica(2), `/v1/namespace/${name}/drop`, { behavior: "Restrict" }),
      ]);
      // The order is arbitrary, but the second request sees the first.
      expect([declared.status, dropped.status]).toSatisfy((both) => ["200,409", "404,200"].includes(`${both}`));
    }
  });

  test("answer readers and drops of the same objects without losing their successors", async () => {
    const location = uniqueName("fixed");
    for (let round = 0; round < 5; round++) {
      // The location is free when one of the replicas has deleted its objects.
      const table = await vi.waitFor(() => declare({ location }), { timeout: 60_000 });
      expect((await create(replica(round), table, 1, stageManifest(table, 1))).status).toBe(200);
      await Promise.all([0, 1, 2].map((index) => post(replica(index), `${table.path}/version/list`)));
      const dropped = await Promise.all([0, 1, 2].map((index) => post(replica(index), `${table.path}/drop`)));
      expect(dropped.map(({ status }) => status).toSorted()).toEqual([200, 404, 404]);
      await expect.poll(() => existsSync(`/${pathOf(table)}`)).toBe(false);
    }
  });

  test("accept each other's tokens", async () => {
    const form = new URLSearchParams({ grant_type: "client_credentials", client_secret: adminKey });
    const answer = await fetch(`${replica(0).url}/oauth/token`, { method: "POST", body: form });
    const { access_token } = (await answer.json()) as { access_token: string };
    for (const each of replicas) {
      const { status } = await post(each, "/v1/namespace/$/exists", {}, { authorization: `Bearer ${access_token}` });
      expect(status).toBe(200);
    }
  });
});
