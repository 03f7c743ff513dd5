import { beforeAll, expect, test } from "vitest";
import { claimAttempt } from "../support/attempts.ts";
import { useCatalog } from "../support/catalog.ts";
import { useDeferredWork } from "../support/deferred-work.ts";
import { arrowStream, films } from "../support/rows.ts";

const runner = { key: "key-of-the-runner-0123456789" };
/** The delay of the catalog itself exceeds the duration of these tests. */
const catalog = useCatalog({ TILTYARD_RUNNER_API_KEY: runner.key, TILTYARD_AUTOMATION_DELAY: "9d" });
const doDeferredWork = useDeferredWork(catalog);
const id = ["__system", "geneva_jobs"];
/** The number of small fragments and of versions after which jobs open. */
const [smallFragments, versions] = [50, 100];

beforeAll(() => catalog.call("createNamespace", { id: ["__system"] }));

test("Geneva's records are compacted and cleaned by jobs of the catalog itself, whose keys write nothing else", async () => {
  const other = ["__system", "geneva_errors"];
  const client = await catalog.keyFor("ann", { __system: "writer" });
  for (const table of [id, other])
    await catalog.call("createTable", { id: table }, { body: arrowStream(films), key: client });
  const { properties } = (await catalog.call("describeTable", { id })).body;
  expect(properties).toMatchObject({
    auto_compact: JSON.stringify({ small_fragments: smallFragments }),
    auto_clean_up: JSON.stringify({ versions, older_than_seconds: 3_600 }),
  });
  for (let number = 1; number < versions; number += 1)
    await catalog.call("insertIntoTable", { id }, { body: arrowStream(films), key: client });
  await doDeferredWork();
  const found = (await catalog.call("listJobs", { id: ["__system"] })).body.jobs;
  expect(found.map(({ operation, principal }) => `${operation} of ${principal}`).toSorted()).toEqual([
    "CleanUpTable of catalog",
    "CompactTable of catalog",
  ]);
  const [job = ""] = found.map(({ job_id }) => job_id);
  await claimAttempt(catalog, job, {}, runner);
  const { key } = (await catalog.call("createJobKey", { id: job.split("$"), attempt: 1 }, runner)).body;
  const tag = async (table: string[]) =>
    (await catalog.call("createTableTag", { id: table, tag: "t", version: 1 }, { key })).status;
  expect([await tag(id), await tag(other)]).toEqual([200, 403]);
});

test("a policy that the creator of a table in __system sets replaces that of the catalog", async () => {
  const properties = { auto_compact: JSON.stringify({ small_fragments: 7 }) };
  await catalog.call("declareTable", { id: ["__system", "own"], properties });
  expect((await catalog.call("describeTable", { id: ["__system", "own"] })).body.properties).toEqual(properties);
});

test("the policy of the catalog applies to a table in __system that is created with other properties", async () => {
  const properties = { owner: "geneva" };
  const created = ["__system", "created"];
  const request = { id: created, properties: JSON.stringify(properties) };
  expect((await catalog.call("createTable", request, { body: arrowStream(films) })).status).toBe(200);
  await catalog.call("declareTable", { id: ["__system", "declared"], properties });
  const propertiesOf = async (table: string[]) => (await catalog.call("describeTable", { id: table })).body.properties;
  expect(await propertiesOf(created)).toMatchObject({ ...properties, auto_compact: expect.any(String) });
  expect(await propertiesOf(created)).toEqual(await propertiesOf(["__system", "declared"]));
});

test("no API key can be created for the principal of these jobs", async () => {
  expect((await catalog.call("createApiKey", { principal: "catalog" })).error.status).toBe(400);
});
