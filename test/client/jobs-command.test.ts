import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { runCommandLine, tiltyard } from "../../client/command-line.ts";
import { beginAttempt, finishAttempt, heartbeat } from "../support/attempts.ts";
import { declareTable, useCatalog } from "../support/catalog.ts";
import { startCommand } from "../support/command.ts";
import { startProgram } from "../support/process.ts";
import { createFilms } from "../support/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const catalog = useCatalog();

const environment = () => ({ TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: catalog.adminKey });
/** The line on standard error with which every command names its catalog. */
const named = () => `catalog: ${catalog.url} (from TILTYARD_CATALOG_URL)\n`;
const start = (...args: readonly string[]) => startCommand(runCommandLine, ["jobs", ...args], environment());
/** Starts the command as a process, for tests that need one. */
const startProcess = (...args: readonly string[]) => startProgram(["client/main.ts", "jobs", ...args], environment());

/** Opens a job that the test itself executes. */
async function open(): Promise<string> {
  const { id } = await declareTable(catalog);
  return (await catalog.call("openJob", { id, column: "c" })).body.job_id;
}

/** Creates a table with a column `c` of values and a computed column. */
async function createComputed(): Promise<string> {
  const id = await createFilms(catalog);
  const columns = [
    { name: "c", expression: "id" },
    { name: "twice", computed: "id * 2" },
  ];
  for (const column of columns) await catalog.call("alterTableAddColumns", { id, new_columns: [column] });
  return id.join("$");
}

async function alter(job: string, status: string, properties: Readonly<Record<string, string>> = {}) {
  const set = Object.entries(properties).map(([key, value]) => ({ setPropertyAction: { key, value } }));
  const actions = [...set, { setStatusAction: { status } }];
  expect((await catalog.call("alterTransaction", { id: job.split("$"), actions })).status).toBe(200);
}

describe("tiltyard jobs", () => {
  test.each(["backfill", "refresh", "compact", "build-index", "clean-up"])(
    "%s describes all of its options",
    (name) => {
      const command = tiltyard().commands.find((each) => each.name() === "jobs");
      const options = command?.commands.find((each) => each.name() === name)?.options ?? [];
      expect(options.length).toBeGreaterThan(5);
      expect(options.filter(({ description }) => /^(\(required\))?$/.test(description))).toEqual([]);
    },
  );

  test("watch shows rows, rate and time left, and ends as the job did", async () => {
    const job = await open();
    await beginAttempt(catalog, job, 2);
    await heartbeat(catalog, job, { progress: { rows_total: 1000, rows_per_second: 50, rows_committed: 250 } });
    const program = start("watch", job);
    const shown = await program.printed("250/1,000");
    expect(shown).toContain("Running (attempt 2) [#####---------------] 250/1,000 rows, 50 rows/s, 15 s left\n");
    await finishAttempt(catalog, job, { status: "Succeeded", progress: { rows_total: 1000, rows_committed: 1000 } });
    expect(await program.finished).toMatchObject({ code: 0, stdout: "Succeeded\n" });
  });

  test("watch shows rows in checkpoints, which are not committed yet, and workers", async () => {
    const job = await open();
    await beginAttempt(catalog, job);
    const rows = { rows_total: 1000, rows_committed: 100, rows_checkpointed: 500 };
    await heartbeat(catalog, job, { progress: { ...rows, workers_active: 3, workers_pending: 5 } });
    const program = start("watch", job);
    expect(await program.printed("1,000 rows")).toContain(
      "Running [##########----------] 500/1,000 rows, 3 workers and 5 pending\n",
    );
    await alter(job, "Canceled");
    await program.finished;
  });

  test("watch shows the times of the stages and the retries of commits", async () => {
    const job = await open();
    await beginAttempt(catalog, job);
    const rows = { rows_total: 1000, rows_committed: 1000 };
    const times = {
      read_millis: 1_200,
      compute_millis: 240_000,
      write_millis: 900,
      commit_millis: 0,
      commit_retries: 2,
    };
    await finishAttempt(catalog, job, { status: "Succeeded", progress: { ...rows, ...times } });
    expect((await start("watch", job).finished).stderr).toContain(
      `${named()}Succeeded [####################] 1,000/1,000 rows; read 2 s, compute 4 min, write 1 s, commit retries: 2\n`,
    );
  });

  test("watch shows a job without rows as done", async () => {
    const job = await open();
    await beginAttempt(catalog, job);
    await finishAttempt(catalog, job, { status: "Succeeded", progress: { rows_total: 0 } });
    expect((await start("watch", job).finished).stderr).toMatch(
      /Succeeded \[####################\] no rows to compute\ntook \d+ s\n$/,
    );
  });

  test("watch ends with the duration, and names the commands that show errors of rows and the output", async () => {
    const job = await open();
    await beginAttempt(catalog, job, 2);
    await finishAttempt(catalog, job, { status: "Failed", reason: "no such film" });
    const commands = `See: tiltyard jobs errors '${job}', tiltyard jobs logs '${job}'\n`;
    const failed = await start("watch", job).finished;
    expect(failed.stderr).toMatch(/took \d+ s in attempt 2\. See: /);
    expect([failed.stdout, failed.stderr]).toEqual(["Failed: no such film\n", expect.stringContaining(commands)]);
    const skipping = await open();
    await beginAttempt(catalog, skipping);
    const progress = { rows_total: 10, rows_committed: 10, rows_skipped_on_error: 3 };
    await finishAttempt(catalog, skipping, { status: "Succeeded", progress });
    const { stderr } = await start("watch", skipping).finished;
    expect(stderr).toMatch(/took \d+ s; skipped 3 rows with errors\. See: tiltyard jobs errors /);
  });

  test.each([
    ["Failed", 3],
    ["Canceled", 4],
  ])("watch shows why a job is %s and exits with %i", async (status, code) => {
    const job = await open();
    await alter(job, status, { reason: "no such film" });
    expect(await start("watch", job).finished).toMatchObject({ code, stdout: `${status}: no such film\n` });
    const { stdout } = await start("watch", "--json", job).finished;
    expect(JSON.parse(stdout)).toMatchObject({ job_id: job, status, reason: "no such film" });
  });

  test("errors shows the failed rows, and the traceback of the first one", async () => {
    const films = (await createComputed()).split("$");
    const job = (await catalog.call("alterTableBackfillColumns", { id: films, column: "twice" })).body.job_id;
    const records = tableFromArrays({
      error_type: ["ValueError", "TypeError"],
      error_message: ["no such film", "no text"],
      error_trace: [
        'Traceback (most recent call last):\n  File "films.py", line 3\nValueError: no such film\n',
        "other",
      ],
      column_name: ["twice", "twice"],
      job_id: [job, job],
      fragment_id: [3, 4].map(BigInt),
      row_address: [7n, 8n],
      attempt: [1, 1].map(BigInt),
      timestamp: [new Date(1_000), new Date(2_000)],
    });
    await catalog.call("createNamespace", { id: ["__system"] });
    const id = ["__system", "geneva_errors"];
    expect((await catalog.call("createTable", { id }, { body: tableToIPC(records, "stream") })).status).toBe(200);
    expect((await start("errors", job).finished).stdout.split("\n").map((line) => line.trimEnd())).toEqual([
      "COLUMN  FRAGMENT  ROW  ERROR",
      "twice   3         7    ValueError: no such film",
      "twice   4         8    TypeError: no text",
      "",
      "The traceback of the first error, all with --json:",
      "Traceback (most recent call last):",
      '  File "films.py", line 3',
      "ValueError: no such film",
      "",
    ]);
    await catalog.call("cancelJob", { id: job.split("$") });
  });

  test("list shows jobs and how far they are; --open those that have not ended", async () => {
    const [ended, running] = [await open(), await open()];
    await alter(ended, "Failed");
    await beginAttempt(catalog, running);
    await heartbeat(catalog, running, { progress: { rows_total: 10, rows_committed: 5 } });
    const { stdout } = await startProcess("list").finished;
    expect(stdout).toMatch(/^ID +STATUS +TABLE +JOB +PROGRESS +PRINCIPAL +OPENED\n/);
    expect(stdout).toMatch(
      new RegExp(`^${running.replace("$", "\\$")} +Running +\\S+ +Fill c +5/10 rows +bootstrap`, "m"),
    );
    expect(stdout).toContain(ended);
    const open_ = JSON.parse((await start("list", "--open", "--json").finished).stdout);
    expect(open_.map(({ job_id }: { job_id: string }) => job_id)).toEqual([running]);
  });

  test("watch and list show the reason of a waiting job", async () => {
    const job = await open();
    const reason = "Waiting: no node (0/3 nodes are available)";
    await alter(job, "Queued", { reason });
    expect((await start("list", "--open").finished).stdout).toContain(` ${reason} `);
    const watching = start("watch", job);
    expect(await watching.printed("0/3 nodes")).toContain(`Queued: ${reason}\n`);
    await alter(job, "Canceled");
    await watching.finished;
  });

  test("watch continues after a gateway has responded in place of the catalog", async () => {
    const job = await open();
    await beginAttempt(catalog, job);
    let isAway = false;
    await using gateway = createServer(async ({ url }, response) => {
      if (isAway) return void response.writeHead(404).end("404 page not found");
      const answer = await fetch(`${catalog.url}${url}`, { headers: { "x-api-key": catalog.adminKey } });
      response.writeHead(answer.status).end(await answer.text());
    });
    await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
    const { port } = gateway.address() as AddressInfo;
    const throughGateway = { ...environment(), TILTYARD_CATALOG_URL: `http://127.0.0.1:${port}` };
    const program = startCommand(runCommandLine, ["jobs", "watch", job], throughGateway);
    await program.printed("Running");
    isAway = true;
    await program.printed("the catalog does not respond; retrying");
    isAway = false;
    await finishAttempt(catalog, job, { status: "Succeeded" });
    expect(await program.finished).toMatchObject({ code: 0, stdout: "Succeeded\n" });
  });

  test("watch says when no runner claims a job", async () => {
    const id = (await createComputed()).split("$");
    const job = (await catalog.call("alterTableBackfillColumns", { id, column: "twice" })).body.job_id;
    const watching = start("watch", job);
    expect(await watching.printed("runner --local")).toMatch(
      /^Queued: position \d+ in the queue: no runner has claimed the job: is one connected/m,
    );
    await catalog.call("cancelJob", { id: job.split("$") });
    await watching.finished;
  });

  test("cancel, retry, describe and logs do what they say", async () => {
    const { id } = await declareTable(catalog);
    const job = (await catalog.call("compactTable", { id })).body.job_id;
    await beginAttempt(catalog, job);
    await heartbeat(catalog, job, { log_tail: "one\ntwo" });
    expect((await start("cancel", job).finished).stdout).toBe(`job ${job} is Canceled\n`);
    expect((await start("logs", job).finished).stdout).toBe("one\ntwo\n");
    const again = (await start("retry", job).finished).stdout.trim();
    expect(JSON.parse((await start("describe", again, "--json").finished).stdout)).toMatchObject({
      job_id: again,
      status: "Queued",
    });
    for (const options of [[], ["--failed-rows"]]) {
      const refused = await start("retry", again, ...options).finished;
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("the job is Queued")]);
    }
    await start("cancel", again).finished;
    const ofFailedRows = await start("retry", again, "--failed-rows").finished;
    expect([ofFailedRows.code, ofFailedRows.stderr]).toEqual([1, expect.stringContaining("only a backfill")]);
  });

  test("describe shows status, reason, progress and times for people", async () => {
    const job = await open();
    await beginAttempt(catalog, job, 2);
    await heartbeat(catalog, job, { progress: { rows_total: 1000, rows_per_second: 50, rows_committed: 250 } });
    const shown = async () => (await start("describe", job).finished).stdout;
    expect(await shown()).toMatch(
      /^job: .+\nstatus: Running \(attempt 2\)\ntable: .+\noperation: Fill c\nprogress: 250\/1,000 rows, 50 rows\/s, 15 s left\n/,
    );
    await finishAttempt(catalog, job, { status: "Failed", reason: "no such film" });
    expect(await shown()).toMatch(
      /status: Failed \(attempt 2\)\nreason: no such film\n[\s\S]+\nopened: 20\S+Z\nstarted: 20\S+Z\nended: 20\S+Z, after \d+ s\nparameters:\n {2}column: c\n/,
    );
  });

  test("list, describe and watch show the position and the priority of a job in the queue", async () => {
    const table = await createComputed();
    const job = (await start("compact", "--priority", "high", table).finished).stdout.trim();
    const queue = /position \d+ in the queue, high priority/;
    expect((await start("list", "--table", table).finished).stdout).toMatch(queue);
    expect((await start("describe", job).finished).stdout).toMatch(
      /\nqueue: position \d+ in the queue, high priority\n/,
    );
    const watching = start("watch", job);
    expect(await watching.printed("in the queue")).toMatch(/Queued: position \d+ in the queue, high priority/);
    await alter(job, "Canceled");
    await watching.finished;
  });

  test("list, describe and watch show the time since the latest progress of a stalled job", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      const job = await open();
      await beginAttempt(catalog, job);
      await heartbeat(catalog, job, { progress: { rows_total: 1000, rows_committed: 250 } });
      vi.setSystemTime(Date.now() + 45 * 60_000);
      const stall = "no progress for 45 min";
      expect((await start("list").finished).stdout).toContain(`250/1,000 rows; ${stall}`);
      expect((await start("describe", job).finished).stdout).toMatch(
        new RegExp(`\nstalled: ${stall}, since 20\\S+Z\n`),
      );
      const watching = start("watch", job);
      expect(await watching.printed(stall)).toContain(`250/1,000 rows; ${stall}\n`);
      await alter(job, "Canceled");
      await watching.finished;
    } finally {
      vi.useRealTimers();
    }
  });

  test("attempts lists what ended each attempt, and logs prints the output of an earlier one", async () => {
    const job = await open();
    await beginAttempt(catalog, job);
    await finishAttempt(catalog, job, { reason: "the Ray cluster is gone\nat some line", log_tail: "first" });
    await beginAttempt(catalog, job);
    await heartbeat(catalog, job, { log_tail: "second" });
    expect((await start("attempts", job).finished).stdout).toMatch(
      /^ATTEMPT +STARTED +ENDED +REASON\n1 +\S+Z +\S+Z +the Ray cluster is gone\n2 +\S+Z *\n$/,
    );
    expect((await start("logs", job, "--attempt", "1").finished).stdout).toBe("first\n");
    expect((await start("logs", job).finished).stdout).toBe("second\n");
    expect(await start("logs", job, "--attempt", "3").finished).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/has no attempt 3. See: tiltyard jobs attempts '\S+'\n$/),
    });
  });

  test.each([{}, { TILTYARD_CATALOG_URL: "" }])("use the catalog of this machine with %j", async (environment) => {
    const settings = { ...environment, TILTYARD_PORT: "1" };
    expect(await startCommand(runCommandLine, ["jobs", "list"], settings).finished).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("no Tiltyard catalog answers at http://127.0.0.1:1"),
    });
  });

  test.each(["", "wrong"])("say where their key is from when it is refused: %j", async (key) => {
    const environment = { TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: key };
    expect(await startCommand(runCommandLine, ["jobs", "list"], environment).finished).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("has its key from TILTYARD_API_KEY"),
    });
  });

  test("report that a job does not exist", async () => {
    const missing = await start("watch", "nothing").finished;
    expect([missing.code, missing.stderr]).toEqual([
      1,
      expect.stringContaining("no transaction or job has the id nothing"),
    ]);
  });

  test("watch leaves the job alone when it is interrupted", async () => {
    const job = await open();
    const program = startProcess("watch", job);
    await program.printed("Queued");
    program.child.kill("SIGINT");
    expect((await program.finished).code).toBe(130);
    expect((await catalog.call("describeTransaction", { id: job.split("$") })).body.status).toBe("Queued");
  });

  test.each([
    [["compact", "--target-rows-per-fragment", "1000"], "CompactTable", { target_rows_per_fragment: 1000 }],
    [
      ["build-index", "--column", "c", "--index-type", "BTREE"],
      "BuildTableIndex",
      { column: "c", index_type: "BTREE" },
    ],
    [
      ["clean-up", "--older-than-seconds", "0", "--keep-versions", "2"],
      "CleanUpTable",
      { older_than_seconds: 0, keep_versions: 2 },
    ],
    [
      ["backfill", "--column", "twice", "--concurrency", "2", "--cluster", "default"],
      "AlterTableBackfillColumns",
      { column: "twice", concurrency: 2, cluster: "default" },
    ],
  ])("%s opens a job and prints its id", async (args, operation, parameters) => {
    const table = await createComputed();
    const { code, stdout, stderr } = await start(...args, table).finished;
    expect([code, stderr]).toEqual([0, named()]);
    const { job } = (await catalog.call("describeJob", { id: stdout.trim().split("$") })).body;
    expect(job).toMatchObject({ operation, parameters, objects: [table.split("$")] });
  });

  test("a command that opens a job follows it with --watch", async () => {
    const program = start("backfill", "--column", "twice", "--watch", await createComputed());
    const [, job = ""] = /^job (.*)\n/m.exec(await program.printed("Queued")) ?? [];
    await alter(job, "Failed", { reason: "no such film" });
    expect(await program.finished).toMatchObject({ code: 3, stdout: "Failed: no such film\n" });
  });

  test.each([
    [["compact", "films", "--concurrency", "0"], "'0' is invalid. It must be at least 1."],
    [["compact", "films", "--concurrency", "many"], "It must be a number"],
    [["clean-up", "films", "--older-than-seconds", ""], "It must be a number"],
    [["build-index", "films", "--column", "c"], "--index-type <text>' not specified"],
    [["backfill", "films", "--column", ""], "It must not be empty."],
  ])("%s is refused before anything is sent", async (args, told) => {
    expect(await start(...args).finished).toMatchObject({ code: 2, stderr: expect.stringContaining(told) });
  });

  test("definitions lists the names of manifests and Ray clusters", async () => {
    expect(JSON.parse((await start("definitions", "--json").finished).stdout)).toEqual([
      { name: "default", kind: "cluster of the runner" },
    ]);
  });

  // `script` of util-linux runs a command in a terminal.
  test.runIf(process.platform === "linux")("policy waits for the text that a user types", async () => {
    const command = `"${process.execPath}" client/main.ts jobs policy t -f - --url http://127.0.0.1:1`;
    const terminal = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"]);
    onTestFinished(() => void terminal.kill());
    const shown: string[] = [];
    terminal.stdout.on("data", (data) => shown.push(String(data)));
    await vi.waitUntil(() => shown.join("").includes("catalog: "), 30_000);
    terminal.stdin.end("nonsense: 1\n\u0004");
    await once(terminal, "close");
    expect(shown.join("")).toContain("has no field nonsense");
  });

  test("policy shows, replaces and removes the policy of a table", async () => {
    const table = await createComputed();
    const folder = temporaryFolder("policy");
    const file = (text: string) => {
      writeFileSync(join(folder, "policy.yaml"), text);
      return join(folder, "policy.yaml");
    };
    const policy = {
      auto_compact: { small_fragments: 20 },
      auto_build_index: [{ new_fragments: 10, column: "id", index_type: "BTREE" }],
    };
    expect(JSON.parse((await start("policy", table, "--json").finished).stdout)).toEqual({});
    const put = await start("policy", table, "-f", file(JSON.stringify(policy))).finished;
    expect([put.code, put.stderr]).toEqual([0, named()]);
    expect(JSON.parse((await start("policy", table, "--json").finished).stdout)).toEqual(policy);
    expect((await start("policy", table, "-f", file(put.stdout)).finished).stdout).toBe(put.stdout);
    const { stdout } = await start("policy", table, "-f", file("auto_clean_up: {versions: 5}"), "--json").finished;
    expect(JSON.parse(stdout)).toEqual({ auto_clean_up: { versions: 5 } });
    expect((await start("policy", table, "-f", file("{}")).finished).stdout).toBe("{}\n");
    const { properties } = (await catalog.call("describeTable", { id: table.split("$") })).body;
    expect(Object.keys(properties)).not.toContain("auto_clean_up");
  });

  test("policy prints the reason why a part of it opens no jobs", async () => {
    const id = await createFilms(catalog);
    const table = id.join("$");
    const auto_build_index = [{ new_fragments: 10, column: "id", index_type: "BTREE" }] as const;
    await catalog.call("putTablePolicy", { id, auto_build_index: [...auto_build_index] });
    await catalog.call("alterTableAlterColumns", { id, alterations: [{ path: "id", rename: "number" }] });
    const { code, stdout, stderr } = await start("policy", table, "--json").finished;
    expect([code, JSON.parse(stdout)]).toEqual([0, { auto_build_index }]);
    expect(stderr).toBe(`${named()}auto_build_index of id opens no jobs: table ${table} has no column id\n`);
  });

  test.each([
    [
      "auto_compact: {small_fragments: 1}",
      "policy.yaml is not valid:\n  auto_compact.small_fragments: must be at least 2",
    ],
    ["auto_compact: {}", "auto_compact.small_fragments: is required"],
    ["auto_compaction: {}", "has no field auto_compaction"],
    ["auto_clean_up: {versions: 5, keep: 1}", "auto_clean_up: has no field keep"],
    ["- ", "policy.yaml is not valid:\n  the policy: must be an object, not a list"],
    ["{", "cannot read "],
  ])("policy refuses %s and says why", async (text, told) => {
    const file = join(temporaryFolder("policy"), "policy.yaml");
    writeFileSync(file, text);
    const { code, stderr } = await start("policy", "films", "-f", file).finished;
    expect([code, stderr]).toEqual([2, expect.stringContaining(told)]);
  });
});
