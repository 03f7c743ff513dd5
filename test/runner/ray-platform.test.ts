import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { JobsApi } from "../../client/index.ts";
import type { StartableJob } from "../../runner/jobs.ts";
import { RayPlatform } from "../../runner/ray-platform.ts";
import { jobUuid, openJob } from "../support/open-job.ts";
import { startTestDashboard, type TestDashboard } from "../support/ray-dashboard.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const program = "python -m tiltyard.job";

test.each(["ns", "o'brien", "'; touch made; '", "a/b", "-x", "ünï ☃", 'a "b" `c`'])(
  "starts one Ray job for an attempt in the namespace %s and passes its id through the shell unchanged",
  async (namespace) => {
    const dashboard = await startTestDashboard();
    try {
      const jobs = new JobsApi(dashboard.url, undefined);
      const platform = new RayPlatform({
        ray: async () => ({ dashboardUrl: dashboard.url, jobs }),
        catalogUrl: "http://127.0.0.1:2333",
        leaseSeconds: 20,
        standbyMs: 0,
      });
      const job = openJob(namespace);
      await platform.start({ job, number: 2, apiKey: "secret-key" });

      // Ray uses the id in names of files.
      const [id, submitted] = [...dashboard.jobs][0] ?? [];
      expect(id).toBe(`tiltyard-${jobUuid}-2`);
      const command = submitted?.entrypoint.replace(program, "printf '%s\\n'") ?? "";
      const given = execFileSync("sh", ["-c", command], { encoding: "utf8" }).trimEnd().split("\n");
      expect(given).toEqual(["--attempt", "2", "--lease-seconds", "20", "--", job.id]);
      expect(await platform.list()).toEqual([expect.objectContaining({ jobId: job.id, number: 2 })]);
    } finally {
      await dashboard.stop();
    }
  },
);

test("lists no jobs of others on its Ray, whatever they name as their job", async () => {
  const dashboard = await startTestDashboard();
  try {
    const jobs = new JobsApi(dashboard.url, undefined);
    const ray = { dashboardUrl: dashboard.url, jobs };
    const options = { catalogUrl: "http://127.0.0.1:2333", leaseSeconds: 20, standbyMs: 0 };
    const platform = new RayPlatform({ ...options, ray: async () => ray });
    const submission = { entrypoint: "true", submissionId: "tiltyard-other-1" };
    await jobs.submit({ ...submission, metadata: { tiltyard_job: "ns$$id" } });
    const unreadable = { tiltyard_job: 1 } as unknown as Record<string, string>;
    await jobs.submit({ ...submission, submissionId: "tiltyard-other-2", metadata: unreadable });
    expect(await platform.list()).toEqual([]);
  } finally {
    await dashboard.stop();
  }
});

test.each([
  [{ errorType: "JOB_ENTRYPOINT_COMMAND_ERROR", exitCode: -9 }, true],
  [{ errorType: "JOB_ENTRYPOINT_COMMAND_ERROR", exitCode: 137 }, true],
  [{ errorType: "JOB_ENTRYPOINT_COMMAND_ERROR", exitCode: 75 }, true],
  [{ errorType: "JOB_SUPERVISOR_ACTOR_DIED" }, true],
  [{ errorType: "JOB_ENTRYPOINT_COMMAND_ERROR", exitCode: 1 }, false],
  [{ errorType: "RUNTIME_ENV_SETUP_FAILURE" }, false],
  [{}, false],
])("knows whether Ray lost a job that failed with %j", async (failure, isLost) => {
  const dashboard = await startTestDashboard();
  try {
    dashboard.script = () => ({ logs: [""], statuses: ["FAILED"], ...failure });
    const ray = { dashboardUrl: dashboard.url, jobs: new JobsApi(dashboard.url, undefined) };
    const options = { catalogUrl: "http://127.0.0.1:2333", leaseSeconds: 20, standbyMs: 0 };
    const platform = new RayPlatform({ ...options, ray: async () => ray });
    await platform.start({ job: openJob("ns"), number: 1, apiKey: "k" });
    expect(await platform.list()).toMatchObject([{ state: "ended", isLost }]);
  } finally {
    await dashboard.stop();
  }
});

test("deletes a job from its Ray an hour after its end", async () => {
  const dashboard = await startTestDashboard();
  try {
    const ray = { dashboardUrl: dashboard.url, jobs: new JobsApi(dashboard.url, undefined) };
    const options = { catalogUrl: "http://127.0.0.1:2333", leaseSeconds: 20, standbyMs: 0 };
    const platform = new RayPlatform({ ...options, ray: async () => ray });
    await platform.start({ job: openJob("ns"), number: 1, apiKey: "k" });
    const [submitted] = dashboard.jobs.values();
    const forget = async (minutes: number) => {
      Object.assign(submitted ?? {}, { endTime: Date.now() - 60_000 * minutes });
      const [attempt] = await platform.list();
      if (attempt === undefined) throw new Error("there is an attempt");
      await platform.forget(attempt);
      await platform.forget(attempt);
    };
    await forget(59);
    expect(dashboard.jobs.size).toBe(1);
    await forget(61);
    expect(dashboard.jobs.size).toBe(0);
  } finally {
    await dashboard.stop();
  }
});

test.for([
  ["5", "The catalog accepted no further heartbeat of the process: check that Ray reaches the catalog"],
  ["75", "The catalog did not respond to the process of the job: check that Ray reaches the catalog"],
  ["137", "probably because its node had no memory left: give that node more memory"],
  ["-9", "probably because its node had no memory left: give that node more memory"],
  ["1", "Job entrypoint command failed with exit code 1, last available logs"],
])("explains the exit code %s of a process that could not report its end", async ([code, meaning]) => {
  const dashboard = await startTestDashboard();
  try {
    const message = `Job entrypoint command failed with exit code ${code}, last available logs (truncated to 20,000 chars):\nlog`;
    dashboard.script = () => ({ logs: [""], statuses: ["FAILED"], message });
    const jobs = new JobsApi(dashboard.url, undefined);
    const ray = async () => ({ dashboardUrl: dashboard.url, jobs });
    const platform = new RayPlatform({ ray, catalogUrl: "http://127.0.0.1:2333", leaseSeconds: 20, standbyMs: 0 });
    await platform.start({ job: openJob("ns"), number: 1, apiKey: "k" });
    expect((await platform.list())[0]?.message).toContain(meaning);
  } finally {
    await dashboard.stop();
  }
});

test("shows what pip printed when Ray could not install the packages of an attempt", async () => {
  const dashboard = await startTestDashboard();
  try {
    // The message of Ray 2.60.
    const message = [
      "runtime_env setup failed: Failed to set up runtime environment.",
      "Could not create the actor because its associated runtime env failed to be created.",
      "Traceback (most recent call last):",
      "ray._private.runtime_env.utils.SubprocessCalledProcessError: Run cmd[13] failed with the following details.",
      "Command '['pip', 'install']' returned non-zero exit status 1.",
      "Last 50 lines of stdout:",
      ...Array.from({ length: 9 }, (_, line) => `    Collecting package-${line}`),
      "    ERROR: No matching distribution found for no-such-package",
      "",
    ].join("\n");
    dashboard.script = () => ({ logs: [""], statuses: ["FAILED"], message });
    const jobs = new JobsApi(dashboard.url, undefined);
    const ray = async () => ({ dashboardUrl: dashboard.url, jobs });
    const platform = new RayPlatform({ ray, catalogUrl: "http://127.0.0.1:2333", leaseSeconds: 20, standbyMs: 0 });
    await platform.start({ job: openJob("ns"), number: 1, apiKey: "k" });
    const [attempt] = await platform.list();
    const shown = attempt?.message?.split("\n") ?? [];
    expect(shown).toHaveLength(7);
    expect([shown[0], shown.at(-1)]).toEqual([
      "runtime_env setup failed: Failed to set up runtime environment.",
      "ERROR: No matching distribution found for no-such-package",
    ]);
    if (attempt !== undefined) expect(await platform.lastLines(attempt)).toContain("non-zero exit status 1");
  } finally {
    await dashboard.stop();
  }
});

test("reads no output of many megabytes, whose end is also in Ray's message", async () => {
  const dashboard = await startTestDashboard();
  try {
    const message = "Job entrypoint command failed with exit code 1, last available logs:\nthe last line";
    dashboard.script = () => ({ logs: ["x".repeat(20 * 1024 ** 2)], statuses: ["FAILED"], message });
    const jobs = new JobsApi(dashboard.url, undefined);
    const ray = async () => ({ dashboardUrl: dashboard.url, jobs });
    const platform = new RayPlatform({ ray, catalogUrl: "http://127.0.0.1:2333", leaseSeconds: 20, standbyMs: 0 });
    await platform.start({ job: openJob("ns"), number: 1, apiKey: "k" });
    const [attempt] = await platform.list();
    expect(attempt && (await platform.lastLines(attempt))).toMatch(/\nthe last line$/);
  } finally {
    await dashboard.stop();
  }
});

test("refuses a Secret of Kubernetes, where its Ray does not run", async () => {
  const platform = new RayPlatform({
    ray: () => Promise.reject(new Error("no Ray is needed for this")),
    catalogUrl: "http://127.0.0.1:2333",
    leaseSeconds: 20,
    standbyMs: 0,
  });
  const manifest = JSON.stringify({ env_vars: { HF_TOKEN: "secret://hugging-face/token" } });
  const job = { ...openJob("ns"), parameters: { column: "c", manifest } };
  await expect(platform.start({ job, number: 1, apiKey: "k" })).rejects.toThrow(/env_vars.HF_TOKEN is in a Secret/);
});

test("refuses a Ray cluster of an unknown name, because it has one Ray", async () => {
  const platform = new RayPlatform({
    ray: () => Promise.reject(new Error("no Ray is needed for this")),
    catalogUrl: "http://127.0.0.1:2333",
    leaseSeconds: 20,
    standbyMs: 0,
  });
  const job = { ...openJob("ns"), parameters: { column: "c", cluster: "gpu" } };
  await expect(platform.start({ job, number: 1, apiKey: "k" })).rejects.toThrow(/^cluster: "gpu" is unknown/);
});

describe("the process that waits for the next attempt", () => {
  let dashboard: TestDashboard;
  let folder: string;
  let platform: RayPlatform;
  beforeEach(async () => {
    dashboard = await startTestDashboard();
    dashboard.script = () => ({ logs: [""], statuses: ["RUNNING"] });
    folder = temporaryFolder("ray-");
    platform = platformOf({ folder });
  });
  afterEach(() => dashboard.stop());

  const options = { catalogUrl: "http://127.0.0.1:2333", leaseSeconds: 20, standbyMs: 60_000 };
  const platformOf = ({ standbyMs = 60_000, ...own }: { readonly folder?: string; readonly standbyMs?: number }) => {
    const ray = { dashboardUrl: dashboard.url, jobs: new JobsApi(dashboard.url, undefined), ...own };
    return new RayPlatform({ ...options, standbyMs, ray: async () => ray });
  };
  const start = (job: StartableJob, apiKey: string) => platform.start({ job, number: 1, apiKey });
  const [first, second] = [openJob("one"), { ...openJob("two"), id: "two$01a202d5-72e1-748d-90d9-eb704f5cc3f8" }];
  const waiting = () => readdirSync(folder);
  const end = (id: string | undefined) => dashboard.jobs.get(id ?? "")?.statuses.splice(0, 1, "SUCCEEDED");

  test("serves one attempt, whose key is in a folder of its own", async () => {
    await platform.prepare();
    const [standby = ""] = dashboard.jobs.keys();
    const described = await platform.describe(first, 1);
    expect(described).toEqual({ ray_address: dashboard.url, ray_submission_id: standby });
    await start(first, "first-key");
    await platform.prepare();
    await start(second, "second-key");
    expect(await platform.describe(first, 1)).toEqual(described);

    expect([...dashboard.jobs.keys()]).toEqual([standby, expect.stringMatching(/^tiltyard-01a202d5.*f8-1$/)]);
    const [name = ""] = waiting();
    expect(statSync(join(folder, name)).mode & 0o077).toBe(0);
    const read = (file: string) => readFileSync(join(folder, name, file), "utf8");
    expect(read("api-key")).toBe("first-key");
    expect(JSON.parse(read("attempt.json"))).toEqual(["--attempt", "1", "--lease-seconds", "20", "--", first.id]);
    expect(JSON.stringify([...dashboard.jobs.values()])).not.toMatch(/first-key|second-key/);
    expect((await platform.list()).map(({ jobId }) => jobId)).toEqual([first.id, second.id]);

    await platform.stop({ jobId: first.id, number: 1 });
    expect(dashboard.jobs.get(standby)?.statuses).toEqual(["STOPPED"]);
    await platform.prepare();
    expect(waiting()).toEqual([]);
  });

  test("serves one of two attempts that start at the same time", async () => {
    await platform.prepare();
    await Promise.all([start(first, "first-key"), start(second, "second-key")]);
    expect(dashboard.jobs.size).toBe(2);
    expect((await platform.list()).map(({ jobId }) => jobId).toSorted()).toEqual([first.id, second.id]);
  });

  test("is replaced when a job has another environment", async () => {
    await platform.prepare();
    const [before] = waiting();
    await start({ ...first, parameters: { column: "c", manifest: '{"env_vars": {"WORD": "x"}}' } }, "key");
    const [, cold] = dashboard.jobs.keys();
    end(cold);
    await platform.prepare();
    const [after] = waiting();
    expect(after).not.toBe(before);
    expect([...dashboard.jobs.values()].at(-1)?.runtime_env.env_vars).toMatchObject({ WORD: "x" });
    // The key of the job that ran before is in neither of them.
    expect(readdirSync(join(folder, `${after}`))).toEqual([]);
  });

  test("is not used after its death, and not started again before the next job", async () => {
    await platform.prepare();
    const [standby] = dashboard.jobs.keys();
    end(standby);
    await platform.prepare();
    await platform.prepare();
    await start(first, "key");
    expect([...dashboard.jobs.keys()]).toEqual([standby, `tiltyard-${jobUuid}-1`]);
    expect(waiting()).toEqual([]);
  });

  test("is deleted from its Ray an hour after it ended without an attempt", async () => {
    await platform.prepare();
    const [standby = ""] = dashboard.jobs.keys();
    end(standby);
    const endedBefore = async (minutes: number) => {
      Object.assign(dashboard.jobs.get(standby) ?? {}, { endTime: Date.now() - 60_000 * minutes });
      await platform.prepare();
      return dashboard.jobs.has(standby);
    };
    expect(await endedBefore(59)).toBe(true);
    expect(await endedBefore(61)).toBe(false);
  });

  test("is no attempt after its key could not be written", async () => {
    await platform.prepare();
    const [name = ""] = waiting();
    mkdirSync(join(folder, name, "api-key"));
    await expect(start(first, "key")).rejects.toThrow("EISDIR");
    expect(await platform.list()).toEqual([]);
    expect(waiting()).toEqual([]);
  });

  test("is replaced on the Ray that follows a dead one", async () => {
    const [dead, next] = [await startTestDashboard(), dashboard];
    try {
      const folders = [temporaryFolder("ray-"), folder] as const;
      const rays = [dead, next].map(({ url }, index) => ({
        dashboardUrl: url,
        jobs: new JobsApi(url, undefined),
        folder: folders[index] ?? "",
      }));
      const ray = async () => rays[0] ?? Promise.reject(new Error("no Ray"));
      const moving = new RayPlatform({ ...options, ray });
      await moving.prepare();
      expect(readdirSync(folders[0])).toHaveLength(1);
      rays.shift();
      await moving.prepare();
      expect(readdirSync(folders[0])).toEqual([]);
      await moving.start({ job: first, number: 1, apiKey: "key" });
      expect([...next.jobs.keys()]).toEqual([expect.stringMatching(/^tiltyard-standby-/)]);
    } finally {
      await dead.stop();
    }
  });

  test("describes also an attempt that cannot run, whose start then says why", async () => {
    await platform.prepare();
    const manifest = '{"requirements_path": "requirements.txt"}';
    const job = { ...first, parameters: { column: "c", manifest } };
    expect((await platform.describe(job, 1)).ray_submission_id).toBe(`tiltyard-${jobUuid}-1`);
    await expect(start(job, "key")).rejects.toThrow(/requirements_path is a file of the caller's machine/);
  });

  test("is not started if none may wait", async () => {
    await platformOf({ folder, standbyMs: 0 }).prepare();
    expect(dashboard.jobs.size).toBe(0);
  });

  test("does not run on a Ray that another process started", async () => {
    await platformOf({}).prepare();
    expect(dashboard.jobs.size).toBe(0);
  });
});
