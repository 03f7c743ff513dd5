import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createCatalogClient, createManagementClient, JobError } from "../../client/index.ts";
import { type Job, openStatuses } from "../../protocol/index.ts";
import { CatalogJobs, type StartableJob } from "../../runner/jobs.ts";
import { NeedsError, type Platform, type PlatformAttempt, type StartRequest } from "../../runner/platform.ts";
import { type Limits, Reconciler } from "../../runner/reconcile.ts";
import { claimAttempt, finishAttempt, heartbeat, startAttempt } from "../support/attempts.ts";
import { useCatalog } from "../support/catalog.ts";
import { createFilms } from "../support/rows.ts";

const limits: Limits = {
  attempts: 3,
  jobs: 10,
  jobsPerPrincipal: 10,
  resubmitMs: 60_000,
  heartbeatTimeoutMs: 60_000,
  startTimeoutMs: 60_000,
  capacityTimeoutMs: 60_000,
  cancelGraceMs: 60_000,
  finalMs: 60_000,
  retry: { firstMs: 0, mostMs: 0 },
};

/** A platform whose attempts the test controls. */
class Imitation implements Platform {
  readonly started: StartRequest[] = [];
  readonly stopped: string[] = [];
  readonly forgotten: string[] = [];
  output = "the last line";
  /** The namespace of the test's jobs. */
  namespace = "";
  readonly states = new Map<string, PlatformAttempt>();
  needs: string | undefined;
  failure: Error | undefined;
  /** An error that occurs after the start of an attempt. */
  failureAfterStart: Error | undefined;
  /** `list` fails after the next start. */
  isLost = false;
  /** The jobs whose attempts cannot be listed. */
  unlisted: readonly string[] = [];

  async list() {
    if (this.isLost && this.started.length > 0) throw new Error("the platform is away");
    return [...this.states.values()];
  }

  requireListed(job: string) {
    if (this.unlisted.includes(job)) throw new JobError("the namespace cannot be read", { status: 403 });
  }

  async start(request: StartRequest) {
    if (this.needs !== undefined) throw new NeedsError(this.needs);
    if (this.failure !== undefined) throw this.failure;
    this.started.push(request);
    this.become(request.job.id, request.number, "running");
    if (this.failureAfterStart !== undefined) throw this.failureAfterStart;
  }

  async stop({ jobId, number }: Pick<PlatformAttempt, "jobId" | "number">) {
    // A new runner also removes what the jobs of other tests left.
    if (!jobId.startsWith(`${this.namespace}$`)) return;
    this.stopped.push(`${jobId} ${number}`);
    this.become(jobId, number, "ended");
  }

  async forget({ jobId, number }: PlatformAttempt) {
    this.forgotten.push(`${jobId} ${number}`);
    this.states.delete(`${jobId} ${number}`);
  }

  async lastLines() {
    return this.output;
  }

  async describe(_job: Pick<StartableJob, "id">) {
    return { ray_address: "http://imitation" };
  }

  become(jobId: string, number: number, state: PlatformAttempt["state"], message?: string, waitReason?: string) {
    this.states.set(`${jobId} ${number}`, { jobId, number, state, message, waitReason });
  }
}

interface Yard extends AsyncDisposable {
  readonly platform: Imitation;
  readonly namespace: string;
  /** Creates a runner that the catalog and the platform cannot distinguish from a separate process. */
  runner(changes?: Partial<Limits>, signal?: AbortSignal, send?: typeof fetch): Reconciler;
  /** The lines that the runners log. */
  readonly logged: readonly string[];
  open(column: string, key?: string): Promise<string>;
  cancel(job: string): Promise<void>;
  /** Claims an attempt like a runner before its first submission. */
  claim(job: string, note: Readonly<Record<string, string>>): Promise<void>;
  /** Begins an attempt, like its first request. */
  begin(job: string): Promise<void>;
  /** Sends a heartbeat like an attempt. */
  beat(job: string): Promise<void>;
  describe(job: string): Promise<Job>;
}

const catalog = useCatalog();

/** Creates a table of its own, and cancels the table's jobs at the end, because a runner processes all jobs of the catalog. */
async function yard(): Promise<Yard> {
  const platform = new Imitation();
  const logged: string[] = [];
  const management = createManagementClient({ url: catalog.url, apiKey: catalog.adminKey });
  const access = { url: catalog.url, apiKey: await catalog.keyFor("runner", { $: "runner" }) };
  const id = await createFilms(catalog);
  platform.namespace = id[0] ?? "";
  const columns = ["a", "a1", "a2", "a3", "b", "b1", "b2"];
  await catalog.call("alterTableAddColumns", {
    id,
    new_columns: columns.map((name) => ({ name, computed: "id * 2" })),
  });
  const alter = async (job: string, action: object) => {
    expect((await catalog.call("alterTransaction", { id: job.split("$"), actions: [action] })).status).toBe(200);
  };
  return {
    platform,
    namespace: id[0] ?? "",
    runner: (changes = {}, signal?: AbortSignal, send = fetch) =>
      new Reconciler(
        { jobs: new CatalogJobs(createManagementClient({ ...access, fetch: send })), platform },
        { ...limits, ...changes },
        ({ job, text }) => logged.push(`${job}: ${text}`),
        signal,
      ),
    logged,
    open: async (column, apiKey = catalog.adminKey) => {
      const caller = createCatalogClient({ url: catalog.url, apiKey });
      return (await caller.alterTableBackfillColumns({ id, column })).job_id;
    },
    cancel: (job) => alter(job, { setStatusAction: { status: "Canceled" } }),
    claim: (job, platform) => claimAttempt(catalog, job, platform),
    begin: (job) => startAttempt(catalog, job),
    beat: (job) => heartbeat(catalog, job),
    describe: async (job) => (await management.describeJob({ id: job.split("$") })).job,
    [Symbol.asyncDispose]: async () => {
      const { jobs } = await management.listJobs({ id: id.slice(0, 1), status: [...openStatuses] });
      for (const { job_id } of jobs) await management.cancelJob({ id: job_id.split("$") });
    },
  };
}

test("an attempt that is lost before its start does not count, up to ten times", async () => {
  await using each = await yard();
  const runner = each.runner({ attempts: 2 });
  const job = await each.open("a");
  const lose = async (attempt: number) => {
    await runner.reconcile();
    expect(await each.describe(job)).toMatchObject({ attempt });
    const ended = { jobId: job, number: attempt, state: "ended", message: "killed", isLost: true } as const;
    each.platform.states.set(`${job} ${attempt}`, ended);
  };
  for (let attempt = 1; attempt <= 11; attempt += 1) await lose(attempt);
  await runner.reconcile();
  expect(await each.describe(job)).toMatchObject({ status: "Queued", attempt: 12, interruptions: 10 });
  await lose(12);
  await runner.reconcile();
  expect(await each.describe(job)).toMatchObject({ status: "Failed", reason: "abandoned after 2 attempts: killed" });
});

test("an attempt that is lost after its start counts", async () => {
  await using each = await yard();
  const runner = each.runner({ attempts: 1 });
  const job = await each.open("a");
  await runner.reconcile();
  await each.begin(job);
  each.platform.states.set(`${job} 1`, { jobId: job, number: 1, state: "ended", message: "killed", isLost: true });
  await runner.reconcile();
  expect(await each.describe(job)).toMatchObject({ status: "Failed", interruptions: 0 });
});

describe("the key that a runner created before it died", () => {
  test("is removed when its job is canceled before the submission, also without a runner", async () => {
    await using each = await yard();
    const runner = each.runner();
    const [seen, unseen, begun] = [await each.open("a"), await each.open("a1"), await each.open("a2")];
    for (const job of [seen, unseen, begun]) await each.claim(job, {});
    await runner.reconcile();
    expect(each.platform.stopped).toEqual([]);
    await each.begin(begun);
    await each.cancel(seen);
    await runner.reconcile();
    await runner.reconcile();
    expect(each.platform.stopped).toEqual([`${seen} 1`]);
    await each.cancel(unseen);
    await each.cancel(begun);
    await each.runner().reconcile();
    expect(each.platform.stopped).toContain(`${unseen} 1`);
    expect(each.platform.stopped).not.toContain(`${begun} 1`);
  });

  test("is removed when its job is canceled after a start that failed halfway", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner({ retry: { firstMs: 60_000, mostMs: 60_000 } });
    each.platform.failure = new JobError("the RayJob cannot be created", { status: 503 });
    await runner.reconcile();
    await runner.reconcile();
    expect((await each.describe(job)).attempt).toBe(0);
    expect(each.platform.stopped).toEqual([]);
    await each.cancel(job);
    await runner.reconcile();
    expect(each.platform.stopped).toEqual([`${job} 1`]);
  });

  test("is not removed again at once after the platform refused its removal", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner({ retry: { firstMs: 60_000, mostMs: 60_000 } });
    await each.claim(job, { ray_address: "http://imitation" });
    await runner.reconcile();
    await each.cancel(job);
    each.platform.stop = async ({ jobId }) => {
      if (jobId === job) throw new Error("the runner may not delete secrets");
    };
    await runner.reconcile();
    await runner.reconcile();
    expect(each.logged).toEqual([`${job}: the runner may not delete secrets`]);
  });
});

const startedColumns = (platform: Imitation) => platform.started.map(({ job }) => job.parameters.column);

describe("the runner", () => {
  test("starts a job once with several runners that reconcile repeatedly", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runners = [each.runner(), each.runner(), each.runner()];
    for (let pass = 0; pass < 2; pass++) await Promise.all(runners.map((runner) => runner.reconcile()));
    expect(each.platform.started).toHaveLength(1);
    expect((await each.describe(job)).platform).toEqual({ ray_address: "http://imitation" });
  });

  test("logs once how each job ended and its duration", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner();
    await runner.reconcile();
    await each.begin(job);
    await finishAttempt(catalog, job, { status: "Failed", reason: "no such film\nat some line" });
    for (let pass = 0; pass < 2; pass++) await runner.reconcile();
    expect(each.logged).toEqual([`${job}: attempt 1`, expect.stringMatching(/^.+: Failed after \d+ s: no such film$/)]);
  });

  test("wakes for a new job, and not for one that waits for its turn", async () => {
    await using it = await yard();
    const jobs = new CatalogJobs(createManagementClient({ url: catalog.url, apiKey: catalog.adminKey }));
    await it.open("a");
    expect(await jobs.hasNew()).toBe(true);
    await jobs.listOpen();
    expect(await jobs.hasNew()).toBe(false);
    await it.open("b");
    expect(await jobs.hasNew()).toBe(true);
  });

  test("starts the oldest jobs first within the limits, and fairly among principals", async () => {
    await using each = await yard();
    const [ann, bob] = [await catalog.keyFor("ann", { $: "writer" }), await catalog.keyFor("bob", { $: "writer" })];
    for (const column of ["a1", "a2", "a3"]) await each.open(column, ann);
    for (const column of ["b1", "b2"]) await each.open(column, bob);
    await each.runner({ jobs: 3, jobsPerPrincipal: 2 }).reconcile();
    expect(startedColumns(each.platform)).toEqual(["a1", "b1", "a2"]);
  });

  test("limits a job's key to the job's own objects and Geneva's records", async () => {
    await using each = await yard();
    const { platform } = each;
    const cleo = await catalog.keyFor("cleo", { [each.namespace]: "writer" });
    const job = await each.open("a", cleo);
    const runner = each.runner();
    await runner.reconcile();
    const key = platform.started[0]?.apiKey ?? "";
    const statusOf = async (name: "describeTransaction" | "describeNamespace" | "createNamespace", id: string[]) =>
      (await catalog.call(name, { id }, { key })).status;
    expect(await statusOf("describeTransaction", job.split("$"))).toBe(200);
    expect(await statusOf("createNamespace", ["__system"])).toBe(200);
    expect(await statusOf("describeNamespace", [each.namespace])).toBe(403);
    expect(await statusOf("createNamespace", [each.namespace, "other"])).toBe(403);
    const { transactions } = (await catalog.call("listTransactions", { id: [] })).body;
    const principal = `job:${job} for cleo`;
    expect(transactions).toContainEqual(expect.objectContaining({ operation: "CreateNamespace", principal }));
  });

  test("fails a job whose principal lost its rights, and starts the others", async () => {
    await using each = await yard();
    const job = await each.open("a", await catalog.keyFor("dora", { [each.namespace]: "writer" }));
    await catalog.call("revokeGrant", { id: [each.namespace], principal: "dora" });
    await each.open("b");
    await each.runner().reconcile();
    const reason = `dora may no longer write ${each.namespace}$films`;
    expect(await each.describe(job)).toMatchObject({ status: "Failed", reason, attempt: 0 });
    expect(startedColumns(each.platform)).toEqual(["b"]);
  });

  test.each([
    ["the platform does not start for now", new JobError("the platform is away")],
    ["was claimed when this runner stopped", new DOMException("This operation was aborted", "AbortError")],
  ])("delays a job that %s, and counts no attempt for it", async (_, error) => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner({ attempts: 1 });
    each.platform.failure = error;
    for (let pass = 0; pass < 3; pass++) await runner.reconcile();
    expect(await each.describe(job)).toMatchObject({ status: "Queued", attempt: 0 });
    each.platform.failure = undefined;
    await runner.reconcile();
    expect(startedOf(each.platform, job)).toEqual([1]);
  });

  test("asks the platform for a delayed job later, and starts the others meanwhile", async () => {
    await using each = await yard();
    const delayed = await each.open("a");
    const runner = each.runner({ retry: { firstMs: 60_000, mostMs: 60_000 } });
    each.platform.failure = new JobError("the platform is away");
    await runner.reconcile();
    each.platform.failure = undefined;
    const other = await each.open("b");
    await runner.reconcile();
    expect(each.platform.started.map(({ job }) => job.id)).toEqual([other]);
    expect((await each.describe(delayed)).status).toBe("Queued");
  });

  test.each([
    [
      "an error of the platform about this job",
      new JobError("Ray: runtime_env is invalid", { status: 400 }),
      "Ray: runtime_env is invalid",
    ],
    [
      "a bug of the runner",
      new TypeError("x is not a function"),
      "The runner cannot process this job: TypeError: x is not a function",
    ],
  ])("fails a job with the reason after %s, and starts the others", async (_, error, reason) => {
    await using each = await yard();
    const [beforeClaim, afterClaim] = [await each.open("a"), await each.open("a1")];
    const other = await each.open("b");
    const { platform } = each;
    const describe = platform.describe.bind(platform);
    platform.describe = async (job) => (job.id === beforeClaim ? Promise.reject(error) : describe(job));
    const start = platform.start.bind(platform);
    platform.start = async (request) => (request.job.id === afterClaim ? Promise.reject(error) : start(request));
    await each.runner().reconcile();
    for (const job of [beforeClaim, afterClaim])
      expect(await each.describe(job)).toMatchObject({ status: "Failed", reason, attempt: 1 });
    expect(platform.started.map(({ job }) => job.id)).toEqual([other]);
  });

  test("fails a job whose attempt the platform reports in a way that it cannot process, and starts the others", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner({ attempts: 1 });
    await runner.reconcile();
    each.platform.become(job, 1, "ended");
    each.platform.lastLines = () => Promise.reject(new TypeError("no lines"));
    const other = await each.open("b");
    await runner.reconcile();
    expect(await each.describe(job)).toMatchObject({ status: "Failed", reason: expect.stringContaining("no lines") });
    expect(startedOf(each.platform, other)).toEqual([1]);
  });

  test.each([
    ["the platform has started", false],
    ["the platform may have started, because its attempts cannot be listed", true],
  ])("keeps the claim of an attempt whose start failed and that %s", async (_, isLost) => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner({ attempts: 1 });
    Object.assign(each.platform, { failureAfterStart: new JobError("secrets cannot be patched"), isLost });
    await runner.reconcile();
    expect((await each.describe(job)).attempt).toBe(1);
    each.platform.isLost = false;
    await runner.reconcile();
    expect(startedOf(each.platform, job)).toEqual([1]);
  });

  test("leaves a job alone whose attempts cannot be listed, and starts others in its place", async () => {
    await using each = await yard();
    const running = await each.open("a");
    const runner = each.runner({ jobs: 2, heartbeatTimeoutMs: 0, resubmitMs: 0 });
    await runner.reconcile();
    await each.begin(running);
    const waiting = await each.open("b");
    const { states } = each.platform;
    const [attempt] = states.keys();
    states.delete(attempt ?? "");
    each.platform.unlisted = [running, waiting];
    const other = await each.open("a1");
    await runner.reconcile();
    expect([running, waiting, other].map((job) => startedOf(each.platform, job))).toEqual([[1], [], [1]]);
    expect(await each.describe(running)).toMatchObject({ status: "Running", attempt: 1 });
    each.platform.unlisted = [];
    await each.cancel(other);
    await runner.reconcile();
    expect(startedOf(each.platform, waiting)).toEqual([1]);
  });

  test("deletes the remains of a job that has ended, and keeps those that an open job may need", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner();
    await runner.reconcile();
    each.platform.become(job, 1, "ended");
    await runner.reconcile();
    expect(each.platform.forgotten).toEqual([]);
    await each.cancel(job);
    each.platform.become(job, 2, "ended");
    await runner.reconcile();
    expect(each.platform.forgotten.toSorted()).toEqual([`${job} 1`, `${job} 2`]);
  });

  test("retries an attempt that ended without an outcome, and fails the job with the last reason and lines", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner({ attempts: 2 });
    await runner.reconcile();
    each.platform.become(job, 1, "ended", "it was killed");
    await runner.reconcile();
    expect(each.platform.started.map(({ number }) => number)).toEqual([1, 2]);
    each.platform.become(job, 2, "ended", "it was killed again");
    await runner.reconcile();
    expect(await each.describe(job)).toMatchObject({
      status: "Failed",
      reason: "abandoned after 2 attempts: it was killed again",
    });
    const { attempts } = (await catalog.call("listJobAttempts", { id: job.split("$") })).body;
    expect(attempts).toMatchObject([
      { number: 1, reason: "it was killed", lines: ["the last line"] },
      { number: 2, reason: "abandoned after 2 attempts: it was killed again", lines: ["the last line"] },
    ]);
  });

  test("supersedes and stops an attempt without a heartbeat, and spares one with a heartbeat", async () => {
    await using each = await yard();
    const [silent, alive] = [await each.open("a"), await each.open("b")];
    const runner = each.runner({ heartbeatTimeoutMs: 200 });
    await runner.reconcile();
    await each.begin(alive);
    await expect
      .poll(async () => {
        await runner.reconcile();
        await each.beat(alive);
        return startedOf(each.platform, silent);
      })
      .toEqual([1, 2]);
    expect(startedOf(each.platform, alive)).toEqual([1]);
    expect(each.platform.stopped).toEqual([`${silent} 1`]);
  });

  test.each([
    ["a running attempt without a heartbeat", "running", "its heartbeat stopped"],
    ["one that does not start in time", "starting", "it did not start within 0 min: Job is currently running."],
    ["one that ended without an outcome", "ended", "it ended without a result"],
  ] as const)("reports why it abandoned %s", async (_, state, reason) => {
    await using each = await yard();
    const job = await each.open("a");
    await each.runner().reconcile();
    each.platform.become(job, 1, "waiting", undefined, "no node");
    await each.runner().reconcile();
    each.platform.become(job, 1, state, state === "ended" ? undefined : "Job is currently running.");
    const hasty = each.runner({ heartbeatTimeoutMs: 0, startTimeoutMs: 0, attempts: 1 });
    await hasty.reconcile();
    expect(await each.describe(job)).toMatchObject({
      status: "Failed",
      reason: `abandoned after 1 attempts: ${reason}`,
    });
  });

  test("does not supersede an attempt that waits for capacity, on its own platform or another one", async () => {
    await using each = await yard();
    const job = await each.open("a");
    await each.runner().reconcile();
    each.platform.become(job, 1, "waiting");
    const before = (await each.describe(job)).heartbeat;
    await each.runner({ heartbeatTimeoutMs: 0 }).reconcile();
    expect(startedOf(each.platform, job)).toEqual([1]);
    expect((await each.describe(job)).heartbeat).not.toBe(before);
  });

  test("does not supersede a waiting attempt when a gateway responds to its heartbeat in place of the catalog", async () => {
    await using each = await yard();
    const job = await each.open("a");
    let isUpdated = false;
    const updating: typeof fetch = async (url, init) =>
      isUpdated && String(url).endsWith("/heartbeat")
        ? new Response("404 page not found", { status: 404 })
        : fetch(url, init);
    const runner = each.runner({}, undefined, updating);
    await runner.reconcile();
    each.platform.become(job, 1, "waiting");
    isUpdated = true;
    await runner.reconcile();
    expect(startedOf(each.platform, job)).toEqual([1]);
    expect(each.logged.at(-1)).toContain("no Tiltyard catalog answers");
  });

  test("submits an attempt again, once, after its runner died between claim and start", async () => {
    await using each = await yard();
    const [died, begun, elsewhere] = [await each.open("a"), await each.open("b"), await each.open("a1")];
    const here = { ray_address: "http://imitation" };
    await each.claim(died, here);
    await each.claim(begun, here);
    await each.begin(begun);
    await each.claim(elsewhere, { ray_address: "http://elsewhere" });
    await each.runner().reconcile();
    expect(each.platform.started).toEqual([]);
    const runner = each.runner({ resubmitMs: 0 });
    await runner.reconcile();
    expect(each.platform.started.map(({ job, number }) => [job.id, number])).toEqual([[died, 1]]);
    each.platform.states.clear();
    await runner.reconcile();
    expect(each.platform.started).toHaveLength(1);
  });

  test("does not count a claim whose platform disappeared before the start of the attempt", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner({ attempts: 1, heartbeatTimeoutMs: 0 });
    for (let death = 0; death < 3; death++) {
      await each.claim(job, { ray_address: "http://gone" });
      await runner.reconcile();
      expect(await each.describe(job)).toMatchObject({ status: "Queued", attempt: 0 });
    }
    await runner.reconcile();
    expect(startedOf(each.platform, job)).toEqual([1]);
  });

  test("fails a job whose attempt another runner claimed, if this one can never run it", async () => {
    await using each = await yard();
    const job = await each.open("a");
    await each.claim(job, { ray_address: "http://imitation" });
    each.platform.needs = "no such Ray cluster";
    await each.runner({ resubmitMs: 0 }).reconcile();
    expect(await each.describe(job)).toMatchObject({ status: "Failed", reason: each.platform.needs });
  });

  test("restarts the wait for capacity with each attempt", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner();
    await runner.reconcile();
    await each.begin(job);
    each.platform.become(job, 1, "ended");
    await runner.reconcile();
    expect(await each.describe(job)).not.toHaveProperty("started_at_millis");
  });

  test("hands its attempts over when it stops: they do not count, and the next runner starts others at once", async () => {
    await using each = await yard();
    const job = await each.open("a");
    for (let number = 1; number <= 4; number += 1) {
      const runner = each.runner({ attempts: 2 });
      await runner.reconcile();
      await each.begin(job);
      await each.beat(job);
      expect(await each.describe(job)).toMatchObject({ status: "Running", attempt: number, interruptions: number - 1 });
      each.platform.states.clear();
      await runner.handOver();
      expect(await each.describe(job)).toMatchObject({ interruptions: number, reason: "the runner stopped" });
    }
    await each.runner({ attempts: 1 }).reconcile();
    await each.begin(job);
    each.platform.become(job, 5, "ended", "killed");
    await each.runner({ attempts: 1 }).reconcile();
    expect(await each.describe(job)).toMatchObject({ status: "Failed", reason: "abandoned after 1 attempts: killed" });
  });

  test("hands over all attempts before it reports that the catalog rejected one", async () => {
    await using each = await yard();
    const [rejected, slow] = [await each.open("a"), await each.open("a1")];
    const { promise: isRejected, resolve: reject } = Promise.withResolvers<void>();
    const send: typeof fetch = async (url, init) => {
      if (!String(url).endsWith("/finish")) return fetch(url, init);
      if (String(url).includes(encodeURIComponent(rejected))) {
        reject();
        return Response.json({ code: 18, detail: "a bug" }, { status: 500 });
      }
      await isRejected;
      await setImmediate();
      return fetch(url, init);
    };
    const runner = each.runner({}, undefined, send);
    await runner.reconcile();
    for (const job of [rejected, slow]) await each.begin(job);
    await expect(runner.handOver()).rejects.toThrow("a bug");
    expect(await each.describe(slow)).toMatchObject({ interruptions: 1 });
  });

  test("hands over an attempt that its service manager stopped during a pass, instead of failing the job", async () => {
    await using each = await yard();
    const [job, waiting] = [await each.open("a"), await each.open("a1")];
    const stopped = new AbortController();
    const runner = each.runner({ attempts: 1, jobs: 1 }, stopped.signal);
    await runner.reconcile();
    await each.begin(job);
    each.platform.become(job, 1, "ended", "Job entrypoint command failed with exit code 143");
    const list = each.platform.list.bind(each.platform);
    each.platform.list = async () => {
      stopped.abort();
      return list();
    };
    await runner.reconcile();
    await runner.handOver();
    expect(await each.describe(job)).toMatchObject({ status: "Running", attempt: 1, interruptions: 1 });
    expect((await each.describe(waiting)).attempt).toBe(0);
  });

  test("stops the attempt of a paused job, starts none meanwhile, and starts the next one after it is resumed", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner({ attempts: 1, cancelGraceMs: 0 });
    await runner.reconcile();
    await each.begin(job);
    await catalog.call("pauseJob", { id: job.split("$") });
    await runner.reconcile();
    await runner.reconcile();
    expect([...each.platform.states]).toEqual([]);
    expect(await each.describe(job)).toMatchObject({ status: "Running", attempt: 1, interruptions: 1 });
    await catalog.call("resumeJob", { id: job.split("$") });
    await runner.reconcile();
    expect(await each.describe(job)).toMatchObject({ attempt: 2, interruptions: 1 });
  });

  test("releases an attempt that has not started when it stops, and leaves those of other runners alone", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner();
    await runner.reconcile();
    await runner.handOver();
    expect(await each.describe(job)).toMatchObject({ status: "Queued", attempt: 0, interruptions: 0 });
    await each.claim(job, { ray_address: "http://other" });
    await each.begin(job);
    await runner.handOver();
    expect(await each.describe(job)).toMatchObject({ status: "Running", attempt: 1, interruptions: 0 });
  });

  test("reports the reason of a wait as long as the wait lasts", async () => {
    await using each = await yard();
    const job = await each.open("a");
    const runner = each.runner();
    await runner.reconcile();
    const reasonWhile = async (state: PlatformAttempt["state"], waitReason?: string) => {
      each.platform.become(job, 1, state, undefined, waitReason);
      await runner.reconcile();
      return (await each.describe(job)).reason;
    };
    expect(await reasonWhile("waiting", "0/3 nodes are available")).toBe("Waiting: 0/3 nodes are available");
    expect(await reasonWhile("waiting", "ErrImagePull of ours:1")).toBe("Waiting: ErrImagePull of ours:1");
    expect(await reasonWhile("starting")).toBeUndefined();
    expect(await reasonWhile("running", "no GPU")).toBe("Waiting: no GPU");
    expect(await reasonWhile("running")).toBeUndefined();
  });

  test.each([
    ["waiting", "0/3 nodes are available", "0/3 nodes are available"],
    ["waiting", undefined, "The Ray cluster did not become ready. Is the KubeRay operator running?"],
    ["running", "0/3 nodes are available", "0/3 nodes are available"],
  ] as const)(
    "stops and fails an attempt that gets no capacity in time while %s with %s",
    async (state, waitReason, told) => {
      await using each = await yard();
      const job = await each.open("a");
      await each.runner().reconcile();
      each.platform.become(job, 1, state, undefined, waitReason);
      const hasty = each.runner({ capacityTimeoutMs: 0, cancelGraceMs: 0 });
      await hasty.reconcile();
      const reason = `abandoned after 0 min without capacity: ${told}`;
      expect(await each.describe(job)).toMatchObject({ status: "Failed", reason });
      await hasty.reconcile();
      expect(each.platform.stopped).toEqual([`${job} 1`]);
      expect(each.platform.started).toHaveLength(1);
    },
  );

  test("sets no time limit for queued and for running attempts", async () => {
    await using each = await yard();
    const [queued, running] = [await each.open("a"), await each.open("b")];
    await each.runner().reconcile();
    each.platform.become(queued, 1, "queued", undefined, "the queue team-a has not admitted it");
    await each.runner({ capacityTimeoutMs: 0 }).reconcile();
    expect(await each.describe(queued)).toMatchObject({
      status: "Queued",
      reason: "Waiting: the queue team-a has not admitted it",
    });
    expect((await each.describe(running)).status).toBe("Queued");
  });

  test("waits for an attempt with capacity to start, and retries one that does not start in time", async () => {
    await using each = await yard();
    const job = await each.open("a");
    await each.runner().reconcile();
    each.platform.become(job, 1, "starting");
    const patient = each.runner({ heartbeatTimeoutMs: 0 });
    for (let pass = 0; pass < 3; pass++) await patient.reconcile();
    expect(startedOf(each.platform, job)).toEqual([1]);
    await each.runner({ startTimeoutMs: 0 }).reconcile();
    expect([each.platform.stopped, startedOf(each.platform, job)]).toEqual([[`${job} 1`], [1, 2]]);
  });

  test("spends a limited time of a pass on attempts of ended jobs, which members of a namespace can forge", async () => {
    await using each = await yard();
    const { namespace, platform } = each;
    for (let index = 0; index < 20; index++) platform.become(`${namespace}$forged${index}`, 1, "ended");
    const runner = each.runner({ finalMs: 0 });
    await runner.reconcile();
    expect(platform.forgotten).toHaveLength(1);
    await runner.reconcile();
    expect(platform.forgotten).toHaveLength(2);
  });

  test("stops a canceled attempt that does not end by itself, and at once one that has not begun", async () => {
    await using each = await yard();
    const [waiting, running] = [await each.open("a"), await each.open("b")];
    const runner = each.runner();
    await runner.reconcile();
    each.platform.become(waiting, 1, "waiting");
    await each.begin(running);
    await each.cancel(waiting);
    await each.cancel(running);
    await runner.reconcile();
    expect(each.platform.stopped).toEqual([`${waiting} 1`]);
    await each.runner({ cancelGraceMs: 0 }).reconcile();
    expect(each.platform.stopped).toEqual([`${waiting} 1`, `${running} 1`]);
  });

  test.each([
    ["too long", (of: string) => `${of} ${"pod after pod; ".repeat(1_000)}the end`],
    ["cut within a character", (of: string) => `\udcd9 ${of} \ud83d`],
  ])("reports reasons and output that are %s, and continues", async (_, textOf) => {
    await using each = await yard();
    const { platform } = each;
    platform.output = textOf("the output");
    const job = await each.open("a");
    const runner = each.runner({ attempts: 2 });
    await runner.reconcile();
    platform.become(job, 1, "waiting", undefined, textOf("no node"));
    for (let pass = 0; pass < 2; pass++) await runner.reconcile();
    expect((await each.describe(job)).reason).toContain("Waiting: ");
    for (const number of [1, 2]) {
      platform.become(job, number, "ended", textOf("it was killed"));
      await runner.reconcile();
    }
    expect(await each.describe(job)).toMatchObject({
      status: "Failed",
      reason: expect.stringContaining("it was killed"),
    });
    platform.needs = textOf("no template has a GPU");
    const other = await each.open("b");
    await runner.reconcile();
    expect((await each.describe(other)).reason).toContain("no template has a GPU");
  });

  test("fails a job at once, with the platform's message, if the platform can never run it", async () => {
    await using each = await yard();
    const job = await each.open("a");
    each.platform.needs = "no template has a GPU: add one to rayClusters";
    await each.runner().reconcile();
    expect(await each.describe(job)).toMatchObject({ status: "Failed", reason: each.platform.needs });
  });
});

function startedOf({ started }: Imitation, id: string): number[] {
  return started.filter(({ job }) => job.id === id).map(({ number }) => number);
}
