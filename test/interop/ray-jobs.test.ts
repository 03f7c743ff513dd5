import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCatalogClient, createManagementClient, type Job, JobsApi, submitTracked } from "../../client/index.ts";
import type { LocalRay } from "../../client/ray/local-ray.ts";
import { commit, declareTable, useCatalog } from "../support/catalog.ts";
import { startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { startUnreliableProxy } from "../support/unreliable-proxy.ts";
import { startRay } from "./servers.ts";

let ray: LocalRay;
let url: string;
let token: string;
let jobs: JobsApi;
beforeAll(async () => {
  ray = await startRay();
  [url, token, jobs] = [ray.dashboardUrl, ray.token ?? "", ray.jobs];
});
afterAll(() => ray[Symbol.asyncDispose]());

const folder = temporaryFolder("tiltyard job ");
writeFileSync(join(folder, "helper.py"), "import os\n\ndef greeting():\n    return 'hello ' + os.environ['NAME']\n");
writeFileSync(
  join(folder, "main.py"),
  "import time, ray, helper\nray.init()\n@ray.remote\ndef f():\n    return helper.greeting()\n" +
    "print(ray.get(f.remote()), flush=True)\ntime.sleep(2)\nprint('end')\n",
);

async function linesOf(job: Job): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of job.logs()) lines.push(line);
  return lines;
}

describe("jobs on a real Ray", () => {
  test("run in the folder that was uploaded, with their variables, and are followed", async () => {
    const runtimeEnv = { env_vars: { NAME: "there" } };
    const job = await jobs.submit({ entrypoint: "python main.py", workingDirectory: folder, runtimeEnv });
    expect((await linesOf(job)).join("\n")).toMatch(/^hello there$.*^end$/ms);
    expect(await job.details()).toMatchObject({
      submission_id: job.id,
      status: "SUCCEEDED",
      entrypoint: "python main.py",
    });
    expect((await jobs.list()).map((each) => each.submission_id)).toContain(job.id);
  });

  test("are followed from the beginning by another client when the first has died", async () => {
    const { id } = await jobs.submit({ entrypoint: "echo one; sleep 2; echo two" });
    const first = jobs.get(id).logs();
    await first.next();
    await first.return();
    const lines = await linesOf(new JobsApi(url, token).get(id));
    expect(lines.filter((line) => /^(one|two)$/.test(line))).toEqual(["one", "two"]);
  });

  test("find links as the files that they lead to, and may run what was executable", async () => {
    const [shared, linked] = [temporaryFolder("shared "), temporaryFolder("linked ")];
    writeFileSync(join(shared, "words.txt"), "from elsewhere\n");
    writeFileSync(join(linked, "run.sh"), "#!/bin/sh\ncat words.txt more/words.txt\n");
    chmodSync(join(linked, "run.sh"), 0o755);
    symlinkSync(join(shared, "words.txt"), join(linked, "words.txt"));
    symlinkSync(shared, join(linked, "more"));
    const job = await jobs.submit({ entrypoint: "./run.sh", workingDirectory: linked });
    // Ray may print its own lines in between.
    const lines = await linesOf(job);
    expect(lines.filter((line) => line === "from elsewhere")).toHaveLength(2);
  });

  test("rejects a folder that Ray would reject", async () => {
    const large = temporaryFolder("large ");
    writeFileSync(join(large, "data.bin"), randomBytes(101 * 2 ** 20));
    await expect(jobs.submit({ entrypoint: "x", workingDirectory: large })).rejects.toThrow(
      /more than 100 MiB packed: .*\.rayignore/,
    );
  });

  test("are followed while they run, each line once, over connections that break", async () => {
    await using proxy = await startUnreliableProxy(url);
    const count = "for i in $(seq 1 400); do echo line $i; sleep 0.01; done";
    const job = await new JobsApi(proxy.url, token).submit({ entrypoint: `${count}; printf end` });
    const lines: string[] = [];
    for await (const line of job.logs()) {
      lines.push(line);
      if (lines.length % 100 === 50) proxy.breakAll();
    }
    const expected = [...Array.from({ length: 400 }, (_, index) => `line ${index + 1}`), "end"];
    expect(lines.filter((line) => /^(line \d+|end)$/.test(line))).toEqual(expected);
    expect(proxy.broken).toBeGreaterThan(2);
  });

  test("run once when the answer to their submission is lost", async () => {
    await using proxy = await startUnreliableProxy(url);
    proxy.loseAnswers = 1;
    const job = await new JobsApi(proxy.url, token).submit({ entrypoint: "true", metadata: { lost: "once" } });
    expect((await job.wait()).status).toBe("SUCCEEDED");
    expect((await jobs.list()).filter(({ metadata }) => metadata?.lost === "once")).toHaveLength(1);
    expect(proxy.broken).toBe(1);
  });

  test("reports failed and stopped jobs, and used and unknown ids", async () => {
    const failing = await jobs.submit({ entrypoint: "python -c 'raise SystemExit(7)'", submissionId: "mine" });
    expect(await failing.wait()).toMatchObject({ status: "FAILED", message: expect.stringContaining("7") });
    await expect(jobs.submit({ entrypoint: "true", submissionId: "mine" })).rejects.toThrow(/mine already exists/);
    await expect(jobs.get("other").status()).rejects.toThrow(/other does not exist/);
    const endless = await jobs.submit({ entrypoint: "sleep 1000" });
    await endless.stop();
    expect((await endless.wait()).status).toBe("STOPPED");
  });

  test("are refused without a token", async () => {
    await expect(new JobsApi(url).list()).rejects.toThrow(/Ray requires a token: .*RAY_AUTH_TOKEN/);
  });

  test("are listed by the command, which finds the token where Ray does, with those that were not submitted", async () => {
    const home = temporaryFolder("home ");
    mkdirSync(join(home, ".ray"));
    writeFileSync(join(home, ".ray/auth_token"), `${token}\n`);
    const driver = "env -u RAY_JOB_CONFIG_JSON_ENV_VAR python -c 'import ray; ray.init()'";
    const job = await jobs.submit({ entrypoint: driver });
    expect((await job.wait()).status).toBe("SUCCEEDED");
    const list = ["client/main.ts", "ray", "job", "list", "--address", url];
    const found = await startProgram(list, { HOME: home }).finished;
    expect(found.stderr).toBe("");
    expect(found.stdout).toContain(job.id);
    // Jobs that began with ray.init() have a number as id.
    expect(found.stdout).toMatch(/^\d{8} +SUCCEEDED/m);
    const refused = await startProgram(list, { HOME: home, RAY_AUTH_MODE: "disabled" }).finished;
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("Ray requires a token")]);
  });

  describe("that a catalog knows of", () => {
    const catalog = useCatalog();
    async function tracking() {
      const client = createCatalogClient({ url: catalog.url, apiKey: catalog.adminKey });
      const table = await declareTable(catalog);
      await commit(catalog, table, 1);
      const management = createManagementClient({ url: catalog.url, apiKey: catalog.adminKey });
      return { catalog: client, management, table: table.id, column: "c" };
    }

    test.each([
      ["true", "Succeeded", undefined],
      ["python -c 'raise ValueError(\"no such film\")'", "Failed", "no such film"],
    ])("move their transaction on: %s", async (entrypoint, outcome, reason) => {
      const target = await tracking();
      const { transactionId, done, job } = await submitTracked(jobs, { entrypoint }, target);
      await done;
      const { status, properties } = await target.catalog.describeTransaction({ id: transactionId.split("$") });
      expect([status, properties.ray_job_id]).toEqual([outcome, job.id]);
      if (reason !== undefined) expect(properties.reason).toContain(reason);
    });

    test.each([
      ["runs", [], "Canceled", /terminated|stopped/i],
      ["has no place yet", ["--entrypoint-num-cpus", "50"], "Canceled", /did not stop in time/],
    ])("are stopped with the command that follows them, when the job %s", async (_, options, outcome, reason) => {
      const target = await tracking();
      const { job_id: transactionId } = await target.management.openJob({
        id: target.table,
        column: "c",
      });
      const program = startProgram(
        [
          ...["client/main.ts", "ray", "job", "submit", "--address", url, "--transaction", transactionId, ...options],
          ...["--", "sh", "-c", "echo it runs; sleep 1000"],
        ],
        { RAY_AUTH_TOKEN: token, TILTYARD_CATALOG_URL: catalog.url, TILTYARD_API_KEY: catalog.adminKey },
      );
      await program.printed("job ");
      program.child.kill("SIGINT");
      const { code, stderr } = await program.finished;
      expect([code, stderr]).toEqual([130, expect.stringContaining("stopping; interrupt again to exit at once")]);
      const { status, properties } = await target.catalog.describeTransaction({ id: transactionId.split("$") });
      expect(status).toBe(outcome);
      expect(properties.reason).toMatch(reason);
    });
  });
});
