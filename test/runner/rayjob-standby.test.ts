import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseParameters } from "../../client/index.ts";
import type { OpenJob } from "../../runner/jobs.ts";
import { PlaceLostError, type PlatformAttempt } from "../../runner/platform.ts";
import { RayJobApi } from "../../runner/rayjob-api.ts";
import { RayJobPlatform } from "../../runner/rayjob-platform.ts";
import { openJob } from "../support/open-job.ts";
import { type RayJobServer, type Stored, startRayJobServer } from "../support/rayjob-server.ts";

const minute = 60_000;
const first = openJob("ns");
const second = { ...openJob("ns"), id: "ns$01a202d5-72e1-748d-90d9-eb704f5cc3f8" };

let server: RayJobServer;
let runner: RayJobPlatform;
beforeEach(async () => {
  server = await startRayJobServer();
  runner = startRunner();
});
afterEach(() => server.stop());

function startRunner(standbyMs = 15 * minute): RayJobPlatform {
  return new RayJobPlatform({
    api: new RayJobApi(server.kubeConfig, "lancedb"),
    templates: { default: parseParameters({ name: "default" }), gpu: parseParameters({ name: "gpu" }) },
    queue: undefined,
    catalogUrl: "http://tiltyard-catalog:2333",
    leaseSeconds: 60,
    standbyMs,
  });
}

const rayJobs = () => [...server.objects].flatMap(([key, each]): Stored[] => (key.startsWith("rayjobs") ? each : []));
const standbys = () => rayJobs().filter(({ metadata }) => "tiltyard.dev/standby" in metadata.annotations);
const nameOfStandby = (): string => standbys()[0]?.metadata.name;
const statusOf = (name: string, status: object) =>
  Object.assign(server.objects.get(`rayjobs ${name}`), { status: { rayClusterName: `${name}-cluster`, ...status } });

/** Runs a pass as the runner does. @param others Attempts in other namespaces. */
async function pass(platform = runner, others: readonly PlatformAttempt[] = []): Promise<readonly PlatformAttempt[]> {
  const attempts = await platform.list();
  await platform.prepare([...attempts, ...others]);
  return attempts;
}

/** Starts the next attempt of a job as the runner does. @returns The name of its RayJob. */
async function start(job: OpenJob, platform = runner): Promise<string> {
  const place = await platform.describe(job, 1);
  await platform.start({ job: { ...job, platform: place }, number: 1, apiKey: `key of ${job.id}` });
  return place.ray_job?.replace("lancedb/", "") ?? "";
}

/** Runs a job to its end, after which a standby waits. */
async function runJob(job = first, platform = runner): Promise<void> {
  const name = await start(job, platform);
  statusOf(name, { jobDeploymentStatus: "Complete" });
  for (const attempt of await platform.list()) await platform.forget(attempt);
  await pass(platform);
}

describe("the RayJob that waits for the next attempt", () => {
  test("is created after a job in the environment of that job, and has no key and no Secret", async () => {
    await pass();
    expect(rayJobs()).toEqual([]);
    await start(first);
    await pass();
    expect(standbys()).toEqual([]);
    await runJob();
    const [standby] = standbys();
    const command = String(standby.spec.entrypoint).replace("exec python", "echo");
    const env = { TILTYARD_API_KEY_FILE: "/a folder/apiKey" };
    expect(execFileSync("sh", ["-c", command], { encoding: "utf8", env })).toBe(
      "-m tiltyard.job.standby /a folder --idle-seconds 1020\n",
    );
    expect(standby.metadata.name.length).toBeLessThanOrEqual(47);
    const { headGroupSpec, workerGroupSpecs } = standby.spec.rayClusterSpec;
    expect(headGroupSpec.template.spec.restartPolicy).toBe("Never");
    for (const { template } of [headGroupSpec, ...workerGroupSpecs]) {
      const { volumes, containers } = template.spec;
      const secret = { secretName: standby.metadata.name, optional: true, defaultMode: 0o440 };
      expect(volumes).toContainEqual({ name: "catalog-key", secret });
      const mountPath = "/var/run/secrets/tiltyard.dev";
      expect(containers[0].volumeMounts).toContainEqual({ name: "catalog-key", mountPath, readOnly: true });
      expect(containers[0].env).toContainEqual({ name: "TILTYARD_API_KEY_FILE", value: `${mountPath}/apiKey` });
      expect(containers[0].env).toContainEqual({
        name: "RAY_num_workers_soft_limit",
        value: `${Number(containers[0].resources.limits.cpu) + 4}`,
      });
      expect(JSON.stringify(containers)).not.toContain("secretKeyRef");
    }
    expect([...server.objects.keys()]).toEqual([`rayjobs ${standby.metadata.name}`]);
    expect(await pass()).toEqual([]);
    expect(rayJobs()).toHaveLength(1);
  });

  test("becomes the RayJob of the next attempt, whose key its pods receive at once, and is deleted with it", async () => {
    await runJob();
    const name = nameOfStandby();
    statusOf(name, { jobDeploymentStatus: "Running", jobStatus: "RUNNING" });
    for (const pod of ["head", "worker"])
      server.objects.set(`pods ${pod}`, {
        metadata: { name: pod, labels: { "ray.io/cluster": `${name}-cluster` } },
        status: { phase: "Running" },
      });
    await pass();
    expect(await start(second)).toBe(name);
    const secret = server.objects.get(`secrets ${name}`);
    expect(JSON.parse(secret.stringData["attempt.json"])).toEqual([
      ...["--attempt", "1", "--lease-seconds", "60", "--", second.id],
    ]);
    expect(secret).toMatchObject({
      stringData: { apiKey: `key of ${second.id}` },
      metadata: { ownerReferences: [{ kind: "RayJob", name, uid: `uid of ${name}` }] },
    });
    const refreshes = () =>
      ["head", "worker"].map((pod) => server.objects.get(`pods ${pod}`).metadata.annotations["tiltyard.dev/refresh"]);
    const before = refreshes();
    expect(before).toEqual([expect.any(String), expect.any(String)]);
    // The kubelet may have seen the first annotation before the Secret.
    expect(await pass()).toMatchObject([{ jobId: second.id, number: 1, state: "running" }]);
    expect(refreshes().some((each) => before.includes(each))).toBe(false);

    const other = startRunner();
    const [attempt] = await other.list();
    if (attempt === undefined) throw new Error("there is an attempt");
    await other.stop(attempt);
    expect([...server.objects.keys()].filter((key) => !key.startsWith("pods"))).toEqual([]);
  });

  test("serves one of several attempts of several runners, and the others lose their place", async () => {
    await runJob();
    const runners = [runner, startRunner(), startRunner()];
    for (const each of runners) await each.list();
    const jobs = [second, ...["a", "b"].map((end) => ({ ...second, id: `${second.id.slice(0, -1)}${end}` }))];
    const places = await Promise.all(jobs.map((job, index) => runners[index]?.describe(job, 1)));
    expect(new Set(places.map((place) => place?.ray_job))).toEqual(new Set([`lancedb/${nameOfStandby()}`]));
    const started = await Promise.allSettled(
      jobs.map((job, index) =>
        runners[index]?.start({ job: { ...job, platform: places[index] ?? {} }, number: 1, apiKey: job.id }),
      ),
    );
    const winner = started.findIndex(({ status }) => status === "fulfilled");
    expect(started.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const each of started) if (each.status === "rejected") expect(each.reason).toBeInstanceOf(PlaceLostError);
    const [rayJob] = rayJobs();
    expect(rayJob.metadata.annotations["tiltyard.dev/job"]).toBe(jobs[winner]?.id);
    expect(server.objects.get(`secrets ${rayJob.metadata.name}`).stringData.apiKey).toBe(jobs[winner]?.id);
    const loser = jobs[(winner + 1) % 3] ?? second;
    expect(await start(loser)).toMatch(/^job-/);
  });

  test("serves one of two attempts in the same pass", async () => {
    await runJob();
    await pass();
    const standby = nameOfStandby();
    expect(await start(first)).toBe(standby);
    expect(await start(second)).toMatch(/^job-/);
    expect((await runner.list()).map(({ jobId }) => jobId)).toEqual([first.id, second.id]);
  });

  test("is found by another runner, also for an attempt that a runner claimed before it died", async () => {
    await runJob();
    const other = startRunner();
    await other.list();
    const claimed = { ...second, attempt: 1, platform: await other.describe(second, 1) };
    const third = startRunner();
    await pass(third);
    expect(await third.describe(claimed, 1)).toEqual(claimed.platform);
    const cold = { ...claimed, platform: { ray_job: "lancedb/job-1" } };
    expect(await third.describe(cold, 1)).toEqual(cold.platform);
    const elsewhere = { ...claimed, platform: { ray_job: "other/job-1" } };
    expect(await third.describe(elsewhere, 1)).not.toEqual(elsewhere.platform);
    await third.start({ job: claimed, number: 1, apiKey: "k" });
    expect(await third.list()).toMatchObject([{ jobId: second.id, number: 1 }]);
  });

  test("is deleted before an attempt in another environment starts, so that the attempt has its resources", async () => {
    await runJob();
    await pass();
    const name = await start({ ...second, parameters: { column: "c", manifest: '{"pip": ["numpy"]}' } });
    expect(name).toMatch(/^job-/);
    expect(rayJobs().map(({ metadata }) => metadata.name)).toEqual([name]);
  });

  test.each([
    ["queued", "the queue ray has not admitted it"],
    ["waiting", "no node"],
    ["running", "no node"],
  ] as const)("is deleted while an attempt of another team is %s and lacks resources", async (state, lack) => {
    await runJob();
    const theirs = { jobId: "vision$x", number: 1, state, message: undefined };
    await pass(runner, [theirs]);
    expect(standbys()).toHaveLength(1);
    await pass(runner, [{ ...theirs, lack }]);
    expect(standbys()).toEqual([]);
    await pass();
    expect(standbys()).toHaveLength(1);
  });

  test("is deleted after its time, by any runner", async () => {
    await runJob();
    standbys()[0].metadata.creationTimestamp = new Date(Date.now() - 16 * minute).toISOString();
    await pass(startRunner());
    expect(rayJobs()).toEqual([]);
  });

  test("is deleted by a runner that keeps none, and is not used by it", async () => {
    await runJob();
    const other = startRunner(0);
    await other.list();
    expect((await other.describe(second, 1)).ray_job).toMatch(/^lancedb\/job-/);
    await pass(other);
    expect(rayJobs()).toEqual([]);
    await runJob(second, other);
    expect(rayJobs()).toEqual([]);
  });

  test("is one, also after several runners have created one at the same time", async () => {
    const runners = [runner, startRunner()];
    for (const each of runners) {
      statusOf(await start(first, each), { jobDeploymentStatus: "Complete" });
      for (const attempt of await each.list()) await each.forget(attempt);
    }
    for (const each of runners) await each.list();
    for (const each of runners) await each.prepare([]);
    expect(standbys()).toHaveLength(2);
    const [kept] = standbys()
      .map(({ metadata }) => metadata.name)
      .toSorted();
    for (let passes = 0; passes < 2; passes++) await Promise.all(runners.map((each) => pass(each)));
    expect(standbys().map(({ metadata }) => metadata.name)).toEqual([kept]);
  });

  test("is not deleted if another runner assigns it at the same time", async () => {
    await runJob();
    const other = startRunner(0);
    const attempts = await other.list();
    await pass();
    await start(second);
    await other.prepare(attempts);
    expect(await runner.list()).toMatchObject([{ jobId: second.id }]);
  });

  test("is not used after its end, deleted, and not created again before the next job", async () => {
    await runJob();
    statusOf(nameOfStandby(), { jobDeploymentStatus: "Failed" });
    await runner.list();
    expect((await runner.describe(second, 1)).ray_job).toMatch(/^lancedb\/job-/);
    for (let passes = 0; passes < 2; passes++) await pass();
    expect(rayJobs()).toEqual([]);
    await runJob(second);
    expect(standbys()).toHaveLength(1);
  });

  test("is deleted with its attempt if the key cannot be stored", async () => {
    await runJob();
    await pass();
    server.forbidden = ["POST secrets"];
    await expect(start(second)).rejects.toThrow(/cannot create the Secret standby-.*403/);
    expect(rayJobs()).toEqual([]);
  });

  test("does not exist where it may not be created, which prevents no job", async () => {
    await start(first);
    server.forbidden = ["POST rayjobs"];
    for (const attempt of await runner.list()) await runner.forget(attempt);
    await pass();
    server.forbidden = [];
    await pass();
    expect(rayJobs()).toEqual([]);
    expect(await start(second)).toMatch(/^job-/);
  });
});
