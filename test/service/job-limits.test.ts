import { expect, test } from "vitest";
import { uniqueName, useCatalog } from "../support/catalog.ts";
import { doDeferredWork } from "../support/deferred-work.ts";
import { arrowStream, createFilms, films } from "../support/rows.ts";

const catalog = useCatalog({ TILTYARD_OPEN_JOBS_PER_PRINCIPAL: "3", TILTYARD_OPEN_JOBS_PER_NAMESPACE: "5" });

/** Creates a table with two computed columns, and the key of a new principal that may write it. */
async function createYard() {
  const id = await createFilms(catalog);
  const new_columns = ["a", "b"].map((name) => ({ name, computed: "id * 2" }));
  await catalog.call("alterTableAddColumns", { id, new_columns });
  const principal = uniqueName("ann");
  return { id, principal, key: await catalog.keyFor(principal, { [id[0] ?? ""]: "writer" }) };
}

test("refuses the jobs of a principal beyond its maximum, and accepts them after the end of one", async () => {
  const { id, principal, key } = await createYard();
  const opened = [];
  for (let number = 0; number < 3; number += 1) opened.push(await catalog.call("openJob", { id }, { key }));
  expect(opened.map(({ status }) => status)).toEqual([201, 201, 201]);
  const requests = [
    ["openJob", { id }],
    ["alterTableBackfillColumns", { id, column: "a" }],
    ["refreshMaterializedView", { id }],
    ["compactTable", { id }],
    ["cleanUpTable", { id }],
    ["buildTableIndex", { id, column: "id", index_type: "BTREE" }],
  ] as const;
  for (const [name, request] of requests)
    expect((await catalog.call(name, request, { key })).error).toMatchObject({
      status: 429,
      title: "Too many requests",
      detail: `${principal} has 3 open jobs, of 3 at most (TILTYARD_OPEN_JOBS_PER_PRINCIPAL): wait for the end of some, or cancel them`,
    });
  const other = await catalog.keyFor(uniqueName("ben"), { [id[0] ?? ""]: "writer" });
  expect((await catalog.call("compactTable", { id }, { key: other })).status).toBe(202);
  await catalog.call("cancelJob", { id: opened[0]?.body.job_id.split("$") ?? [] }, { key });
  expect((await catalog.call("alterTableBackfillColumns", { id, column: "a" }, { key })).status).toBe(202);
});

test("refuses jobs beyond the maximum of their namespace, and leaves others alone", async () => {
  const { id } = await createYard();
  for (let number = 0; number < 5; number += 1) {
    const key = await catalog.keyFor(uniqueName("ann"), { [id[0] ?? ""]: "writer" });
    expect((await catalog.call("openJob", { id }, { key })).status).toBe(201);
  }
  const key = await catalog.keyFor(uniqueName("ann"), { [id[0] ?? ""]: "writer" });
  expect((await catalog.call("compactTable", { id }, { key })).error).toMatchObject({
    status: 429,
    detail: expect.stringContaining(`the namespace ${id[0]} has 5 open jobs, of 5 at most`),
  });
  const elsewhere = await createYard();
  expect((await catalog.call("compactTable", { id: elsewhere.id }, { key: elsewhere.key })).status).toBe(202);
});

test("opens the job of a policy once its principal has fewer open jobs", async () => {
  const { id, key } = await createYard();
  await catalog.call("putTablePolicy", { id, auto_compact: { small_fragments: 2 } }, { key });
  const opened = [];
  for (let number = 0; number < 3; number += 1) opened.push(await catalog.call("openJob", { id }, { key }));
  await catalog.call("insertIntoTable", { id }, { body: arrowStream(films) });
  const compactions = async () => {
    await doDeferredWork(catalog.database, { openJobsMax: 3 });
    const { jobs } = (await catalog.call("listJobs", { table: id.join("$") })).body;
    return jobs.filter(({ operation }) => operation === "CompactTable").length;
  };
  expect(await compactions()).toBe(0);
  await catalog.call("cancelJob", { id: opened[0]?.body.job_id.split("$") ?? [] });
  expect(await compactions()).toBe(1);
});

test("lists jobs and transactions without the parameters of jobs, which a description has", async () => {
  const { id, key } = await createYard();
  const manifest = JSON.stringify({ pip: ["x".repeat(60_000)] });
  await catalog.call("updateFieldMetadata", { id, updates: [{ path: "title", metadata: { virtual_column: "true" } }] });
  const backfill = { id, column: "title", manifest };
  const { job_id } = (await catalog.call("alterTableBackfillColumns", backfill, { key })).body;
  const { jobs } = (await catalog.call("listJobs", { table: id.join("$") })).body;
  const { transactions } = (await catalog.call("listTransactions", { table: id.join("$") })).body;
  expect(jobs).toMatchObject([{ job_id, operation: "AlterTableBackfillColumns", status: "Queued", column: "title" }]);
  expect(transactions).toContainEqual(expect.objectContaining({ transaction_id: job_id }));
  expect(JSON.stringify([jobs, transactions])).not.toContain("xxx");
  const { job } = (await catalog.call("describeJob", { id: job_id.split("$") })).body;
  expect(job.parameters).toEqual({ column: "title", manifest });
  const larger = JSON.stringify({ pip: ["x".repeat(66_000)] });
  const refused = await catalog.call("alterTableBackfillColumns", { ...backfill, manifest: larger }, { key });
  expect(refused.error).toMatchObject({
    status: 400,
    detail: "the job's parameters: must have at most 65536 characters as JSON",
  });
});

test("refuses the name of a cluster that the runner does not have, with the setting that lists them", async () => {
  const { id } = await createYard();
  for (const cluster of ["constructor", "__proto__", "gpu"])
    expect((await catalog.call("compactTable", { id, cluster })).error).toMatchObject({
      status: 400,
      detail: expect.stringMatching(
        /is not a definition .*, and not one of the runner's in TILTYARD_RAY_CLUSTERS: default$/,
      ),
    });
  expect((await catalog.call("compactTable", { id, cluster: "default" })).status).toBe(202);
});
