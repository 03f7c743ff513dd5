import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCatalogClient, JobsApi, submitTracked } from "../../client/index.ts";
import { commit, declareTable, useCatalog } from "../support/catalog.ts";
import { startRay, type TestServer } from "./servers.ts";

const token = "0123456789abcdef0123456789abcdef";
let ray: TestServer;
let jobs: JobsApi;
beforeAll(async () => {
  ray = await startRay(token);
  jobs = new JobsApi(ray.url, token);
});
afterAll(() => ray.stop());

const folder = mkdtempSync(join(tmpdir(), "tiltyard job "));
writeFileSync(join(folder, "helper.py"), "import os\n\ndef greeting():\n    return 'hello ' + os.environ['NAME']\n");
writeFileSync(
  join(folder, "main.py"),
  "import time, ray, helper\nray.init()\n@ray.remote\ndef f():\n    return helper.greeting()\n" +
    "print(ray.get(f.remote()), flush=True)\ntime.sleep(2)\nprint('end')\n",
);

describe("jobs on a real Ray", () => {
  test("run in the folder that was uploaded, with their variables, and are followed", async () => {
    const runtimeEnv = { env_vars: { NAME: "there" } };
    const job = await jobs.submit({ entrypoint: "python main.py", workingDirectory: folder, runtimeEnv });
    const lines: string[] = [];
    for await (const line of job.logs()) lines.push(line);
    expect(lines.join("\n")).toMatch(/^hello there$.*^end$/ms);
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
    const lines: string[] = [];
    for await (const line of new JobsApi(ray.url, token).get(id).logs()) lines.push(line);
    expect(lines.filter((line) => /^(one|two)$/.test(line))).toEqual(["one", "two"]);
  });

  test("that fail or are stopped say so, and an id that is taken or unknown is told", async () => {
    const failing = await jobs.submit({ entrypoint: "python -c 'raise SystemExit(7)'", submissionId: "mine" });
    expect(await failing.wait()).toMatchObject({ status: "FAILED", message: expect.stringContaining("7") });
    await expect(jobs.submit({ entrypoint: "true", submissionId: "mine" })).rejects.toThrow(/mine already exists/);
    await expect(jobs.get("other").status()).rejects.toThrow(/other does not exist/);
    const endless = await jobs.submit({ entrypoint: "sleep 1000" });
    await endless.stop();
    expect((await endless.wait()).status).toBe("STOPPED");
  });

  test("are nobody's who has no token", async () => {
    await expect(new JobsApi(ray.url).list()).rejects.toThrow(/Ray wants a token: .*RAY_AUTH_TOKEN/);
  });

  describe("that a catalog knows of", () => {
    const catalog = useCatalog();
    test.each([
      ["true", "Succeeded"],
      ["false", "Failed"],
    ])("move their transaction on: %s", async (entrypoint, outcome) => {
      const client = createCatalogClient({ url: catalog.url, apiKey: catalog.adminKey });
      const table = await declareTable(catalog);
      await commit(catalog, table, 1);
      const { transactionId, done, job } = await submitTracked(
        jobs,
        { entrypoint },
        { catalog: client, table: table.id, column: "c" },
      );
      await done;
      const { status, properties } = await client.describeTransaction({ id: transactionId.split("$") });
      expect([status, properties.ray_job_id]).toEqual([outcome, job.id]);
    });
  });
});
