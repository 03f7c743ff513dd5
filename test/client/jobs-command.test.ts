import { describe, expect, test } from "vitest";
import { declareTable, useCatalog } from "../support/catalog.ts";
import { startProgram } from "../support/process.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog();

function start(...args: readonly string[]) {
  return startProgram(["client/main.ts", "jobs", ...args], {
    TILTYARD_CATALOG_URL: catalog.url,
    TILTYARD_API_KEY: catalog.adminKey,
  });
}

/** A job that this test runs. */
async function open(): Promise<string> {
  const { id } = await declareTable(catalog);
  return (await catalog.call("openJob", { id, column: "c" })).body.job_id;
}

const columnC = (table: string) => ({ id: table.split("$"), new_columns: [{ name: "c", expression: "id" }] });

async function alter(job: string, status: string, properties: Readonly<Record<string, string>> = {}) {
  const set = Object.entries(properties).map(([key, value]) => ({ setPropertyAction: { key, value } }));
  const actions = [...set, { setStatusAction: { status } }];
  expect((await catalog.call("alterTransaction", { id: job.split("$"), actions })).status).toBe(200);
}

describe("tiltyard jobs", () => {
  test("watch shows rows, rate and time left, and ends as the job did", async () => {
    const job = await open();
    const progress = { "progress.rows_total": "1000", "progress.rows_per_second": "50" };
    await alter(job, "Running", { ...progress, "progress.rows_committed": "250", "attempt.2": "now" });
    const program = start("watch", job);
    const shown = await program.printed("250/1000");
    expect(shown).toContain("Running (attempt 2) [#####---------------] 250/1000 rows, 50 rows/s, 15 s left\n");
    await alter(job, "Succeeded", { "progress.rows_committed": "1000" });
    expect(await program.finished).toMatchObject({ code: 0, stdout: "Succeeded\n" });
  });

  test.each([
    ["Failed", 3],
    ["Canceled", 4],
  ])("watch tells why a job is %s and exits with %i", async (status, code) => {
    const job = await open();
    await alter(job, status, { reason: "no such film" });
    expect(await start("watch", job).finished).toMatchObject({ code, stdout: `${status}: no such film\n` });
    const { stdout } = await start("watch", "--json", job).finished;
    expect(JSON.parse(stdout)).toMatchObject({ job_id: job, status, reason: "no such film" });
  });

  test("list shows jobs and how far they are; --open those that have not ended", async () => {
    const [ended, running] = [await open(), await open()];
    await alter(ended, "Failed");
    await alter(running, "Running", { "progress.rows_total": "10", "progress.rows_committed": "5" });
    const { stdout } = await start("list").finished;
    expect(stdout).toMatch(/^ID +STATUS +TARGET +PROGRESS +PRINCIPAL +OPENED\n/);
    expect(stdout).toMatch(new RegExp(`^${running.replace("$", "\\$")} +Running +\\S+ c +5/10 rows +bootstrap`, "m"));
    expect(stdout).toContain(ended);
    const open_ = JSON.parse((await start("list", "--open", "--json").finished).stdout);
    expect(open_.map(({ job_id }: { job_id: string }) => job_id)).toEqual([running]);
  });

  test("watch and list tell what a job waits for", async () => {
    const job = await open();
    const reason = "it waits: no node for it (0/3 nodes are available)";
    await alter(job, "Queued", { reason });
    expect(await start("watch", job).printed("0/3 nodes")).toContain(`Queued: ${reason}\n`);
    expect((await start("list", "--open").finished).stdout).toContain(` ${reason} `);
  });

  test("cancel, retry, describe and logs do what they say", async () => {
    const job = await open();
    await alter(job, "Running", { log_tail: "one\ntwo" });
    expect((await start("cancel", job).finished).stdout).toBe(`job ${job} is Canceled\n`);
    expect((await start("logs", job).finished).stdout).toBe("one\ntwo\n");
    const again = (await start("retry", job).finished).stdout.trim();
    expect(JSON.parse((await start("describe", again).finished).stdout)).toMatchObject({
      job_id: again,
      status: "Queued",
    });
    const refused = await start("retry", again).finished;
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("the job is Queued")]);
  });

  test("say which catalog they need, and that a job is not there", async () => {
    expect(await startProgram(["client/main.ts", "jobs", "list"]).finished).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("TILTYARD_CATALOG_URL"),
    });
    const missing = await start("watch", "nothing").finished;
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining("nothing does not exist")]);
  });

  test("watch leaves the job alone when it is interrupted", async () => {
    const job = await open();
    const program = start("watch", job);
    await program.printed("Queued");
    program.child.kill("SIGINT");
    expect((await program.finished).code).toBe(130);
    expect((await catalog.call("describeTransaction", { id: job.split("$") })).body.status).toBe("Queued");
  });

  test.each([
    [["compact", "--target-rows", "1000"], "CompactTable", { target_rows_per_fragment: "1000" }],
    [["index", "--column", "c", "--type", "BTREE"], "BuildTableIndex", { column: "c", index_type: "BTREE" }],
    [["clean-up", "--older-than", "0", "--keep", "2"], "CleanUpTable", { older_than_seconds: "0", keep_versions: "2" }],
  ])("%s opens a job and prints its id", async (args, operation, parameters) => {
    const table = (await createFilms(catalog)).join("$");
    if (args[0] === "index") await catalog.call("alterTableAddColumns", columnC(table));
    const { code, stdout, stderr } = await start(...args, table).finished;
    expect([code, stderr]).toEqual([0, ""]);
    const { job } = (await catalog.call("describeJob", { id: stdout.trim().split("$") })).body;
    expect(job).toMatchObject({ operation, parameters, objects: [table.split("$")] });
  });
});
