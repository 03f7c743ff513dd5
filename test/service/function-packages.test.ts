import { expect, test } from "vitest";
import { beginAttempt, claimAttempt, finishAttempt, heartbeat } from "../support/attempts.ts";
import { uniqueName, useCatalog } from "../support/catalog.ts";
import { functionColumns, functionRegistration, registerFunction } from "../support/functions.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog({
  TILTYARD_RUNNER_API_KEY: "key-of-the-runner-0123456789",
  TILTYARD_OPEN_JOBS_PER_PRINCIPAL: "3",
});
const runner = { key: "key-of-the-runner-0123456789" };

const registrationOf = (...packages: string[]) =>
  functionRegistration({ runtime: { environment: { kind: "pip", packages } } });

interface Options {
  readonly packages?: readonly string[];
  readonly key?: string;
}

/** Registers a Function with packages, as a new principal unless a key is given. @returns The id of the job. */
async function register(id: readonly string[], { packages = ["numpy>=2"], key }: Options = {}) {
  const caller = key ?? (await catalog.keyFor(uniqueName("writer"), { [id[0] ?? ""]: "writer" }));
  const { status, body } = await catalog.call(
    "createFunction",
    { id, ...registrationOf(...packages) },
    { key: caller },
  );
  expect(status).toBe(200);
  return body.job_id;
}

async function createNamespace() {
  const namespace = uniqueName("ns");
  await catalog.call("createNamespace", { id: [namespace] });
  return namespace;
}

const describeJob = async (job: string) => (await catalog.call("describeJob", { id: job.split("$") })).body.job;
const asClient = async (job_id: string) => (await catalog.call("describeRemoteJob", { job_id })).body;
const versionsIn = async (namespace: string) =>
  (await catalog.call("listFunctions", { id: [namespace] })).body.functions.map(({ definition }) => definition);

async function succeed(job: string) {
  await beginAttempt(catalog, job);
  await finishAttempt(catalog, job, { status: "Succeeded" });
}

test("a version with packages can be used once its job has installed them", async () => {
  const id = await createFilms(catalog);
  const [namespace = ""] = id;
  const job = await register([namespace, "f"]);
  expect(await describeJob(job)).toMatchObject({
    operation: "CreateFunction",
    objects: [[namespace, "f"]],
    status: "Queued",
    parameters: { version: 1, python_version: "3.12", packages: ["numpy>=2"], timeout_seconds: 3600 },
  });
  expect(await asClient(job)).toMatchObject({ job_type: "CreateFunction", job_state: "IN_PROGRESS" });
  const [baking] = await versionsIn(namespace);
  expect(baking?.disabled).toBe(true);
  if (baking === undefined) return;
  const columns = { id, ...functionColumns(baking, { value: "id" }, { $value: "double" }) };
  expect((await catalog.call("remoteAlterTableAddColumns", columns)).error).toMatchObject({
    status: 400,
    detail: `function: the packages of version 1 of ${namespace}$f are not installed: wait for the job ${job}, which is Queued`,
  });
  await succeed(job);
  const { job_state, result } = await asClient(job);
  expect([job_state, result]).toEqual(["DONE", { ...baking, disabled: false }]);
  expect((await catalog.call("remoteAlterTableAddColumns", columns)).status).toBe(200);
  // An equal registration is done at once.
  const packages = { runtime: { environment: { kind: "pip", packages: ["numpy>=2"] } } };
  expect(await registerFunction(catalog, [namespace, "f"], packages)).toEqual(result);
});

test("a failed job reports the phase bake, and the next registration opens another job", async () => {
  const id = await createFilms(catalog);
  const [namespace = ""] = id;
  const first = await register([namespace, "f"]);
  expect(await register([namespace, "f"])).toBe(first);
  await beginAttempt(catalog, first);
  const reason = "JobError: the packages of f version 1 were not found:\nnumpy was not found";
  await finishAttempt(catalog, first, { status: "Failed", reason });
  expect(await asClient(first)).toMatchObject({
    job_state: "FAILED",
    failure: { phase: "bake", message: reason, retryable: false },
  });
  const [failed] = await versionsIn(namespace);
  if (failed === undefined) throw new Error("The version is missing");
  const columns = { id, ...functionColumns(failed, { value: "id" }, { $value: "double" }) };
  expect((await catalog.call("remoteAlterTableAddColumns", columns)).error).toMatchObject({
    status: 400,
    detail: expect.stringContaining(`are not installed. Register the function again. ${reason}`),
  });
  const second = await register([namespace, "f"]);
  expect(second).not.toBe(first);
  // The end of an earlier job does not matter.
  expect((await catalog.call("retryJob", { id: first.split("$") })).body.job_id).toBe(second);
  await catalog.call("cancelJob", { id: second.split("$") });
  const third = (await catalog.call("retryJob", { id: first.split("$") })).body.job_id;
  await succeed(third);
  expect(await asClient(third)).toMatchObject({ job_state: "DONE", result: { version: "1", disabled: false } });
  expect((await catalog.call("retryJob", { id: first.split("$") })).status).toBe(409);
});

test("has a version for each set of packages, whatever their order", async () => {
  const namespace = await createNamespace();
  const all = ["numpy>=2,<3", "requests[socks] ~= 2.32 ; python_version < '3.13'"];
  const job = await register([namespace, "f"], { packages: all });
  expect(await register([namespace, "f"], { packages: all.toReversed() })).toBe(job);
  expect(await register([namespace, "f"])).not.toBe(job);
  expect((await versionsIn(namespace)).map(({ version }) => version)).toEqual(["1", "2"]);
});

test("a job whose version was dropped fails, also if another version has its number", async () => {
  const namespace = await createNamespace();
  const id = [namespace, "f"];
  const [waiting, running] = [await register(id), await register(id, { packages: ["six"] })];
  await beginAttempt(catalog, running);
  for (const version of ["1", "2"]) await catalog.call("dropFunction", { id, version });
  const replacement = await register(id, { packages: ["idna"] });
  await heartbeat(catalog, running);
  const { status, reason } = await describeJob(running);
  expect([status, reason]).toEqual(["Failed", `version 2 of the function ${namespace}$f was dropped`]);
  await catalog.call("claimJobAttempt", { id: waiting.split("$"), after: 0, platform: {} });
  expect((await describeJob(waiting)).status).toBe("Failed");
  expect((await versionsIn(namespace)).map(({ disabled }) => disabled)).toEqual([true]);
  await succeed(replacement);
  await catalog.call("dropFunction", { id, version: "1" });
  expect((await catalog.call("describeRemoteJob", { job_id: replacement })).error).toMatchObject({
    status: 404,
    detail: `the Function ${namespace}$f has no version 1`,
  });
});

test("a job counts in the quota of its principal, and opens no version beyond it", async () => {
  const namespace = await createNamespace();
  const key = await catalog.keyFor(uniqueName("writer"), { [namespace]: "writer" });
  for (const name of ["a", "b", "c"]) await register([namespace, name], { key });
  const request = { id: [namespace, "d"], ...registrationOf("six") };
  const refused = await catalog.call("createFunction", request, { key });
  expect(refused.error).toMatchObject({
    status: 429,
    detail: expect.stringContaining("has 3 open jobs, of 3 at most"),
  });
  expect((await versionsIn(namespace)).map(({ name }) => name)).toEqual(["a", "b", "c"]);
});

test("concurrent registrations open one job", async () => {
  const namespace = await createNamespace();
  const key = await catalog.keyFor(uniqueName("writer"), { [namespace]: "writer" });
  const jobs = await Promise.all(Array.from({ length: 8 }, () => register([namespace, "f"], { key })));
  expect(new Set(jobs).size).toBe(1);
});

test("the key of an attempt reports, and reaches no table and no Function", async () => {
  const id = await createFilms(catalog);
  const [namespace = ""] = id;
  const job = await register([namespace, id[1] ?? ""]);
  const own = job.split("$");
  await claimAttempt(catalog, job, {}, runner);
  const { key } = (await catalog.call("createJobKey", { id: own, attempt: 1 }, runner)).body;
  const statusOf = async (name: Parameters<typeof catalog.call>[0], request: object) =>
    (await catalog.call(name, { ...request }, { key })).status;
  expect(await statusOf("startJobAttempt", { id: own, attempt: 1, claim: "process" })).toBe(200);
  // The Function has the name of the table.
  expect(await statusOf("describeTable", { id })).toBe(403);
  expect(await statusOf("dropTable", { id })).toBe(403);
  expect(await statusOf("declareTable", { id: [namespace, "other"] })).toBe(403);
  expect(await statusOf("listFunctions", { id: [namespace] })).toBe(403);
  expect(await statusOf("describeFunction", { id, version: "1" })).toBe(403);
  expect(await statusOf("createFunction", { id, ...registrationOf("six") })).toBe(403);
  expect(await statusOf("createNamespace", { id: ["__system"], mode: "exist_ok" })).toBe(403);
  expect(await statusOf("describeJobFunction", { id: own })).toBe(400);
  const failed = { id: own, attempt: 1, claim: "process", status: "Failed" };
  expect(await statusOf("finishJobAttempt", failed)).toBe(200);
  expect(await statusOf("retryJob", { id: own })).toBe(404);
});

test("a job fails without the right of its opener, and only writers of its namespace change it", async () => {
  const namespace = await createNamespace();
  const opener = uniqueName("opener");
  const key = await catalog.keyFor(opener, { [namespace]: "writer" });
  const job = await register([namespace, "f"], { key });
  const id = job.split("$");
  const reader = await catalog.keyFor(uniqueName("reader"), { [namespace]: "reader" });
  const stranger = await catalog.keyFor(uniqueName("stranger"), { [`${namespace}$f`]: "admin" });
  expect((await catalog.call("describeJob", { id }, { key: reader })).status).toBe(200);
  expect((await catalog.call("describeJob", { id }, { key: stranger })).status).toBe(403);
  for (const other of [reader, stranger])
    expect((await catalog.call("cancelJob", { id }, { key: other })).status).toBe(403);
  await catalog.call("revokeGrant", { id: [namespace], principal: opener });
  await catalog.call("claimJobAttempt", { id, after: 0, platform: {} });
  const { status, reason } = await describeJob(job);
  expect([status, reason]).toEqual(["Failed", `${opener} may no longer write ${namespace}$f`]);
});
