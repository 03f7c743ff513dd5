/** The definition of a view selects what the jobs of others read, so each way into the catalog checks its definer. */
import { readFileSync, writeFileSync } from "node:fs";
import { RecordBatch, Schema, Table, tableToIPC } from "apache-arrow";
import { beforeAll, describe, expect, test } from "vitest";
import { replaceSchemaMetadata } from "../../service/lance/manifest-writer.ts";
import { claimAttempt } from "../support/attempts.ts";
import { finalName, pathOf, stageManifest, uniqueName, useCatalog } from "../support/catalog.ts";
import { arrowStream, createFilms, films, filmTable } from "../support/rows.ts";
import { viewMetadata } from "../support/views.ts";

const catalog = useCatalog({ TILTYARD_RUNNER_API_KEY: "key-of-the-runner-0123456789" });
const runner = { key: "key-of-the-runner-0123456789" };

/** A table that mallory may not read, and alice may. */
let secret: string[];
/** The namespace in which both are writers. */
const shared = "shared";
let mallory: string;
let alice: string;
beforeAll(async () => {
  secret = await createFilms(catalog);
  await catalog.call("createNamespace", { id: [shared] });
  mallory = await catalog.keyFor("mallory", { [shared]: "writer" });
  alice = await catalog.keyFor("alice", { [shared]: "writer", [secret[0] ?? ""]: "reader" });
});

const output_schema = Buffer.from(arrowStream([])).toString("base64");
const queryOf = (source: readonly string[]) => JSON.stringify({ base: {}, source_table: source.join("$") });

async function createShared(key: string): Promise<string[]> {
  const id = [shared, uniqueName("table")];
  expect((await catalog.call("createTable", { id }, { key, body: arrowStream(films) })).status).toBe(200);
  return id;
}

/** Returns the manifest of the latest version with other metadata, as the manifest of the next one. */
async function nextManifest(id: readonly string[], metadata: Record<string, string>) {
  const { version } =
    (await catalog.call("listTableVersions", { id, descending: true, limit: 1 })).body.versions[0] ?? {};
  const described = (await catalog.call("describeTableVersion", { id, version })).body.version;
  const next = { version: described.version + 1, timestampMillis: Date.now(), uuid: crypto.randomUUID(), metadata };
  const { location } = (await catalog.call("describeTable", { id })).body;
  return { ...next, content: replaceSchemaMetadata(readFileSync(`/${described.manifest_path}`), next).file, location };
}

/** Commits a version as Lance's clients do. */
async function commit(id: string[], metadata: Record<string, string>, key: string) {
  const { version, content, location } = await nextManifest(id, metadata);
  const manifest_path = stageManifest({ id, location }, version, { content });
  return { id, version, manifest_path, naming_scheme: "V2" as const, key };
}

/** Writes a version into the folder of a table without the catalog. */
async function writeOutside(id: string[], metadata: Record<string, string>): Promise<void> {
  const { version, content, location } = await nextManifest(id, metadata);
  writeFileSync(`/${pathOf({ id, location })}/_versions/${finalName(version, "V2")}`, content);
}

const refresh = (id: readonly string[], key: string) => catalog.call("refreshMaterializedView", { id }, { key });

/** Reports whether the key of a job's attempt reads the secret table. */
async function readsSecret(job: string, attempt = 1): Promise<boolean> {
  await claimAttempt(catalog, job, {}, runner);
  const { body } = await catalog.call("createJobKey", { id: job.split("$"), attempt }, runner);
  return (await catalog.call("describeTable", { id: secret }, { key: body.key })).status === 200;
}

describe("a definition in free properties", () => {
  const properties = { "materialized_view.source_query": "{}" };
  const refused = { status: 400, detail: expect.stringContaining("is reserved for views") };

  test("is rejected by DeclareTable, alone and in a batch", async () => {
    const id = [shared, uniqueName("table")];
    expect((await catalog.call("declareTable", { id, properties })).error).toMatchObject(refused);
    const operations = [{ declare_table: { id, properties } }];
    expect((await catalog.call("batchCommitTables", { operations })).error).toMatchObject(refused);
    expect((await catalog.call("tableExists", { id })).status).toBe(404);
  });

  test("is rejected by RegisterTable and by CreateTable", async () => {
    const id = await createShared(mallory);
    const request = { id, mode: "Overwrite", properties: JSON.stringify(properties) };
    expect((await catalog.call("createTable", request, { body: arrowStream(films) })).error).toMatchObject(refused);
    const { location } = (await catalog.call("describeTable", { id })).body;
    await catalog.call("deregisterTable", { id });
    expect((await catalog.call("registerTable", { id, location, properties })).error).toMatchObject(refused);
  });
});

describe("a definition in the metadata of a schema", () => {
  const refused = { status: 403, detail: expect.stringContaining("mallory needs the role reader") };

  test("is rejected from a definer that may not read the source, whatever commits it", async () => {
    const id = await createShared(mallory);
    const metadata = viewMetadata(secret);
    const key = mallory;
    expect((await catalog.call("updateTableSchemaMetadata", { id, metadata }, { key })).error).toMatchObject(refused);
    const { key: _, ...request } = await commit(id, metadata, key);
    expect((await catalog.call("createTableVersion", request, { key })).error).toMatchObject(refused);
    const entries = [request];
    expect((await catalog.call("batchCreateTableVersions", { entries }, { key })).error).toMatchObject(refused);
    const operations = [{ create_table_version: request }];
    expect((await catalog.call("batchCommitTables", { operations }, { key })).error).toMatchObject(refused);
    const film = filmTable(films);
    const schema = new Schema(film.schema.fields, new Map(Object.entries(metadata)));
    const body = tableToIPC(
      new Table(
        schema,
        film.batches.map(({ data }) => new RecordBatch(schema, data)),
      ),
      "stream",
    );
    const created = { id: [shared, uniqueName("table")] };
    expect((await catalog.call("createTable", created, { key, body })).error).toMatchObject(refused);
    expect((await catalog.call("listTableVersions", { id })).body.versions).toHaveLength(1);
    expect((await catalog.call("listTableViews", { id: secret })).body.views).not.toContainEqual(id);
  });

  test("turns the table into a view of a definer that may read the source", async () => {
    const id = await createShared(mallory);
    const { key, ...request } = await commit(id, viewMetadata(secret), alice);
    expect((await catalog.call("createTableVersion", request, { key })).status).toBe(200);
    expect((await catalog.call("listTableViews", { id: secret }, { key })).body.views).toContainEqual(id);
    const { job_id } = (await refresh(id, alice)).body;
    expect(await readsSecret(job_id)).toBe(true);
    // A writer that may not read the source writes rows, and cannot change the query.
    expect((await catalog.call("insertIntoTable", { id }, { body: arrowStream(films), key: mallory })).status).toBe(
      200,
    );
    const replaced = { id, metadata: viewMetadata(secret, "everything") };
    expect((await catalog.call("updateTableSchemaMetadata", replaced, { key: mallory })).error).toMatchObject(refused);
    expect((await refresh(id, mallory)).error).toMatchObject(refused);
  });

  test("has no definer when it was written without the catalog, also after a commit of another principal", async () => {
    const id = await createShared(mallory);
    await writeOutside(id, viewMetadata(secret));
    const unknown = { status: 409, detail: expect.stringContaining("has no definer") };
    expect((await refresh(id, alice)).error).toMatchObject(unknown);
    expect((await catalog.call("insertIntoTable", { id }, { body: arrowStream(films), key: alice })).status).toBe(200);
    expect((await refresh(id, alice)).error).toMatchObject(unknown);
    expect((await catalog.call("listTableViews", { id: secret })).body.views).not.toContainEqual(id);
  });

  test("is the latest one that the catalog knows, also when a writer deletes or restores versions", async () => {
    const id = await createShared(alice);
    const define = async (query: string) => {
      const metadata = viewMetadata(secret, query);
      expect((await catalog.call("updateTableSchemaMetadata", { id, metadata }, { key: alice })).status).toBe(200);
    };
    await define("everything");
    await define("averages");
    const restored = await catalog.call("restoreTable", { id, version: 2 }, { key: mallory });
    expect(restored.error).toMatchObject(refused);
    const ranges = [{ start_version: 3, end_version: -1 }];
    expect((await catalog.call("batchDeleteTableVersions", { id, ranges }, { key: mallory })).status).toBe(200);
    expect((await refresh(id, alice)).error).toMatchObject({ status: 409 });
  });

  test("belongs to all versions of a batch, or to none", async () => {
    const [id, other] = [await createShared(mallory), await createShared(mallory)];
    const { key: _, ...request } = await commit(id, viewMetadata(secret), alice);
    const missing = { ...request, id: other, version: 9, manifest_path: `${request.manifest_path}-missing` };
    const entries = [request, missing];
    expect((await catalog.call("batchCreateTableVersions", { entries }, { key: alice })).status).toBe(400);
    expect((await catalog.call("listTableViews", { id: secret })).body.views).not.toContainEqual(id);
    expect((await catalog.call("batchCreateTableVersions", { entries: [request] }, { key: alice })).status).toBe(200);
    expect((await catalog.call("listTableViews", { id: secret })).body.views).toContainEqual(id);
  });
});

describe("the key of a refresh", () => {
  const createView = async (key: string) => {
    const id = [shared, uniqueName("view")];
    const request = { id, kind: "query", source_query: queryOf(secret), output_schema };
    expect((await catalog.call("createMaterializedView", request, { key })).status).toBe(201);
    return id;
  };

  test("does not read what the definer may no longer read", async () => {
    const leaver = await catalog.keyFor("leaver", { [shared]: "writer", [secret[0] ?? ""]: "reader" });
    const id = await createView(leaver);
    const { job_id } = (await refresh(id, alice)).body;
    await catalog.call("revokeGrant", { id: secret.slice(0, 1), principal: "leaver" });
    expect(await readsSecret(job_id)).toBe(false);
    expect((await refresh(id, alice)).error).toMatchObject({
      status: 409,
      detail: expect.stringContaining("the definer of the view, leaver, may no longer read"),
    });
  });

  test("does not read what the author of its parameters may not read, after a retry by another principal", async () => {
    const id = await createView(alice);
    const helper = await catalog.keyFor("helper", { [shared]: "writer", [secret[0] ?? ""]: "reader" });
    const manifest = JSON.stringify({ pip: ["mallory==1"] });
    const opened = await catalog.call("refreshMaterializedView", { id, manifest }, { key: helper });
    const job = opened.body.job_id.split("$");
    await catalog.call("cancelJob", { id: job });
    expect((await catalog.call("retryJob", { id: job }, { key: mallory })).error).toMatchObject({ status: 403 });
    await catalog.call("revokeGrant", { id: secret.slice(0, 1), principal: "helper" });
    const { job_id: first } = (await catalog.call("retryJob", { id: job }, { key: alice })).body;
    expect(await readsSecret(first)).toBe(false);
    // The author remains when the retry is retried.
    await catalog.call("cancelJob", { id: first.split("$") });
    const { job_id: second } = (await catalog.call("retryJob", { id: first.split("$") }, { key: alice })).body;
    expect(await readsSecret(second)).toBe(false);
  });
});
