import { execFile } from "node:child_process";
import { rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import {
  type CatalogClient,
  createCatalogClient,
  createManagementClient,
  fromStackOutputs,
  type ManagementClient,
  parseParameters,
} from "../../../client/index.ts";
import { rayClusterManifest } from "../../../client/ray/manifest.ts";
import { runnerName, runnerRights } from "../../../platform/agreed-values.ts";
import { required } from "../../interop/servers.ts";
import type { Program } from "../../support/process.ts";
import { describeOnOurs, folderOf } from "../cluster.ts";
import { isAllowed } from "../kubernetes/access-review.ts";
import type { KubernetesObject } from "../kubernetes/api.ts";
import { platformNodes } from "../platform-nodes.ts";
import { until } from "../until.ts";
import { type DeployedCatalog, startDeployedCatalog } from "./deployed-catalog.ts";
import { inFolder, startDeployedRunner } from "./deployed-runner.ts";
import { machineAddress, RayHeads } from "./ray-heads.ts";
import { catalogNamespace, cluster, namespace, stack } from "./shared-stack.ts";

const jobs = join(import.meta.dirname, "jobs");
const pythonPackage = join(import.meta.dirname, "../../../runner/job");
const rbac = "rbac.authorization.k8s.io";
const table = ["filled", "films"];
const rows = 100;

let deployed: DeployedCatalog;
let catalog: CatalogClient;
let management: ManagementClient;
let heads: RayHeads;
const runners: Program[] = [];

describeOnOurs("the runner that a stack deploys", "an operator that reaches Ray through the API server", () => {
  beforeAll(async () => {
    const { catalogApiKey } = stack().outputs;
    await cluster().startOperator(namespace);
    deployed = await startDeployedCatalog();
    const access = { url: deployed.url, apiKey: String(catalogApiKey) };
    catalog = createCatalogClient(access);
    management = createManagementClient(access);
    await catalog.createNamespace({ id: table.slice(0, -1) });
    await python("create_tables.py", `${table.join("$")}=number`);
    const new_columns = ["one", "two", "three", "four", "five"].map((name) => ({
      name,
      computed: "number * 2",
    }));
    await catalog.alterTableAddColumns({ id: table, new_columns });
    await python("slow_column.py", table.join("$"), "slow");
    await python("define_names.py");
    heads = await RayHeads.start({ TILTYARD_CATALOG_URL: deployed.url, PYTHONPATH: pythonPackage });
  });
  afterEach(async () => {
    for (const { child } of runners) child.kill("SIGKILL");
    await Promise.all(runners.splice(0).map(({ finished }) => finished));
    // The remains of a failed test would fail the following ones.
    const { jobs } = await management.listJobs({ status: ["Queued", "Running"] });
    for (const { job_id } of jobs) await management.cancelJob({ id: job_id.split("$") });
    for (const rayJob of await rayJobs()) await cluster().api.delete(rayJob);
  });
  afterAll(async () => {
    await heads?.[Symbol.asyncDispose]();
    deployed?.service.child.kill("SIGKILL");
    await deployed?.service.finished;
  });

  test("fills a column on a Ray cluster that Geneva defined, with a key of the job, and deletes both", async () => {
    const runner = await startRunner();
    const id = await backfill("one", { cluster: "big", manifest: "words" });
    const rayJob = await until(async () => (await rayJobs())[0]);
    // The definition determines the amounts, and the stack determines the place.
    const { rayClusterSpec, runtimeEnvYAML } = rayJob.spec;
    expect(rayClusterSpec.headGroupSpec.template.spec).toMatchObject({
      serviceAccountName: stack().outputs.serviceAccount,
      containers: [{ resources: { limits: { memory: "3Gi" } } }],
    });
    expect(JSON.parse(runtimeEnvYAML).env_vars).toMatchObject({ WORD: "variable" });
    // The Secret exists before the RayJob, which then becomes its owner.
    const owners = await until(
      async () => (await cluster().api.get("v1", "Secret", rayJob.metadata.name, namespace))?.metadata.ownerReferences,
    );
    expect(owners).toMatchObject([{ kind: "RayJob", uid: rayJob.metadata.uid }]);
    // The operator submits the job with its token. Without it, Ray accepts no jobs.
    await until(async () => (await fetch(`http://${machineAddress}:8265/api/jobs/`)).status === 401);
    expect(await ended(id)).toMatchObject({
      status: "Succeeded",
      attempt: 1,
      progress: { rows_committed: rows, rows_total: rows },
      platform: { ray_job: `${namespace}/${rayJob.metadata.name}` },
    });
    const { transactions } = await management.listTransactions({ id: [] });
    const writer = { operation: "CreateTableVersion", principal: `job:${id} for bootstrap` };
    expect(transactions).toContainEqual(expect.objectContaining(writer));
    await untilNothingIsLeft();
    expect(runner.child.exitCode).toBe(null);
  });

  test("passes its liveness probe, and fails it before its first pass and while it hangs", async () => {
    const { spec } = await cluster().api.get("apps/v1", "Deployment", runnerName, catalogNamespace);
    const [container] = spec.template.spec.containers;
    const [command, ...args]: string[] = container.livenessProbe.exec.command;
    const alive = inFolder("/tmp/alive", container);
    const probe = () =>
      promisify(execFile)(
        String(command),
        args.map((each) => inFolder(each, container)),
      ).then(
        () => "alive",
        () => "dead",
      );
    rmSync(alive, { force: true });
    expect(await probe()).toBe("dead");
    const runner = await startRunner();
    await until(async () => (await probe()) === "alive");
    runner.child.kill("SIGSTOP");
    // A runner that has hung for ten minutes.
    const longAgo = Date.now() / 1_000 - 600;
    utimesSync(alive, longAgo, longAgo);
    expect(await probe()).toBe("dead");
    runner.child.kill("SIGCONT");
    await until(async () => (await probe()) === "alive");
  });

  test("deletes the RayJob of a job that is canceled, with its Ray cluster and its key", async () => {
    await startRunner();
    const id = await backfill("slow");
    await until(async () => (await describe(id)).status === "Running");
    await management.cancelJob({ id: id.split("$") });
    const canceled = performance.now();
    await until(async () => (await rayJobs()).every(({ metadata }) => metadata.deletionTimestamp !== undefined));
    process.stderr.write(
      `e2e: the RayJob was deleted ${Math.round(performance.now() - canceled)} ms after the cancel\n`,
    );
    await untilNothingIsLeft();
    expect(await describe(id)).toMatchObject({ status: "Canceled", attempt: 1 });
  });

  test("is started twice, starts a job once, and fails a job that it cannot start", async () => {
    const left = await jobOfPrincipalWithoutRights();
    const both = await Promise.all([startRunner(), startRunner()]);
    await Promise.all(both.map((runner) => runner.printed("running the jobs of")));
    const id = await backfill("two");
    expect(await ended(id)).toMatchObject({ status: "Succeeded", attempt: 1 });
    const { transactions } = await management.listTransactions({ id: table.slice(0, -1) });
    const keys = transactions.filter(({ properties }) => properties.principal?.startsWith(`job:${id} `));
    expect(keys).toHaveLength(1);
    expect(await ended(left)).toMatchObject({ status: "Failed", reason: expect.stringContaining("leaver") });
    expect(both.map(({ child }) => child.exitCode)).toEqual([null, null]);
    await untilNothingIsLeft();
  });

  test("reports the node that the pods of a job wait for, and continues on a new node", async () => {
    const label = "example.com/nowhere";
    // The catalog accepts only the names of Ray clusters in the settings of the stack.
    for (const name of ["nowhere", "constructor", "__proto__", "toString"])
      await expect(backfill("four", { cluster: name })).rejects.toThrow(`"${name}" is not a definition`);
    await startRunner({ default: { head_group: { node_selector: { [label]: "true" } } } });
    const id = await backfill("four");
    // Other tests use separate nodes.
    const waits = new RegExp(`^Waiting: no node with the label ${label} \\(0/\\d+ nodes are available: `);
    await untilReason(id, waits);
    expect(await describe(id)).toMatchObject({ status: "Queued", attempt: 1 });
    const node = `/api/v1/nodes/${platformNodes.head}`;
    const setLabel = (value: string | null) =>
      cluster().api.request(
        "PATCH",
        node,
        { metadata: { labels: { [label]: value } } },
        "application/merge-patch+json",
      );
    await setLabel("true");
    try {
      const job = await ended(id);
      expect([job.status, job.attempt, job.reason]).toEqual(["Succeeded", 1, undefined]);
    } finally {
      await setLabel(null);
    }
    await untilNothingIsLeft();
  });

  test("reports a quota that rejects the pods of a job, and continues after its removal", async () => {
    await startRunner();
    const { api } = cluster();
    const quota = await api.create({
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "no-pods", namespace },
      spec: { hard: { pods: "0" } },
    } as KubernetesObject);
    let id: string;
    try {
      // The API server enforces the quota after the first pass of the controller manager.
      await until(async () => (await api.find(quota))?.status?.hard?.pods === "0");
      id = await backfill("five");
      const waits = /^Waiting: .*exceeded quota: no-pods/;
      await untilReason(id, waits);
      expect(await describe(id)).toMatchObject({ status: "Queued", attempt: 1 });
    } finally {
      await api.delete(quota);
    }
    const job = await ended(id);
    expect([job.status, job.attempt, job.reason]).toEqual(["Succeeded", 1, undefined]);
    await untilNothingIsLeft();
  });

  test("deletes Ray clusters whose owners died, and leaves the others alone", async () => {
    const clusterOf = (name: string, leaseUntil: Date) =>
      rayClusterManifest(parseParameters({ ...fromStackOutputs(stack().outputs), name }), {
        owner: "e2e",
        leaseUntil,
        creation: "e2e",
      }) as KubernetesObject;
    const { api } = cluster();
    const [orphan, leased] = [
      await api.create(clusterOf("orphan", new Date(0))),
      await api.create(clusterOf("leased", new Date(Date.now() + 3_600_000))),
    ];
    const runner = await startRunner();
    await runner.printed("the Ray cluster orphan is deleted: its owner e2e died");
    await until(async () => (await api.find(orphan)) === undefined);
    expect((await api.find(leased))?.metadata.deletionTimestamp).toBeUndefined();
    await api.delete(leased);
  });

  test("ends at once without its rights, and says which it lacks", async () => {
    const kept = runnerRights.filter(({ resources: [name] }) => name !== "secrets" && name !== "pods");
    const { role, restore } = await withRights(kept);
    try {
      const { code, stderr } = await (await startRunner()).finished;
      const lacking = `the runner may not create secrets, patch secrets, delete secrets, list pods in the namespace ${namespace}`;
      expect([code, stderr]).toEqual([1, expect.stringContaining(lacking)]);
      expect(role).toBe(runnerName);
    } finally {
      await restore();
    }
  });

  test("says which right it has lost, and loses no job and no attempt by it", async () => {
    const runner = await startRunner();
    await runner.printed("running the jobs of");
    const { restore } = await withRights(runnerRights.filter(({ resources: [name] }) => name !== "secrets"));
    let id: string;
    try {
      id = await backfill("three");
      const told = `cannot create resource "secrets" in API group "" in the namespace "${namespace}"`;
      await runner.printed(told);
      expect(await describe(id)).toMatchObject({ status: "Queued", attempt: 0 });
      expect((await rayJobs()).map(({ metadata }) => metadata.name)).toEqual([]);
    } finally {
      await restore();
    }
    expect(await ended(id)).toMatchObject({ status: "Succeeded", attempt: 1 });
    await untilNothingIsLeft();
  });
});

async function backfill(column: string, names: { cluster?: string; manifest?: string } = {}): Promise<string> {
  return (await catalog.alterTableBackfillColumns({ id: table, column, ...names })).job_id;
}

/** Opens a job of a principal whose role is revoked before the job starts. */
async function jobOfPrincipalWithoutRights(): Promise<string> {
  const namespace = ["left"];
  const films = [...namespace, "films"];
  await catalog.createNamespace({ id: namespace });
  await catalog.declareTable({ id: films });
  const { key } = await management.createApiKey({ principal: "leaver", grant: { namespace, role: "writer" } });
  const { job_id } = await createManagementClient({ url: deployed.url, apiKey: key }).compactTable({ id: films });
  await management.revokeGrant({ id: namespace, principal: "leaver" });
  return job_id;
}

async function describe(id: string) {
  return (await management.describeJob({ id: id.split("$") })).job;
}

function ended(id: string) {
  return until(async () => {
    const job = await describe(id);
    return ["Queued", "Running"].includes(job.status) ? undefined : job;
  });
}

function untilReason(id: string, pattern: RegExp): Promise<unknown> {
  return until(async () => {
    const { status, reason } = await describe(id);
    if (!pattern.test(reason ?? "")) throw new Error(`${status}: ${reason}`);
    return true;
  });
}

function rayJobs(): Promise<readonly KubernetesObject[]> {
  return cluster().api.list("ray.io/v1", "RayJob", namespace);
}

/** Waits until no RayJob, Ray cluster or key of jobs remains. */
async function untilNothingIsLeft(): Promise<void> {
  const kinds = [
    ["ray.io/v1", "RayJob"],
    ["ray.io/v1", "RayCluster"],
    ["v1", "Secret"],
    ["v1", "Pod"],
  ] as const;
  for (const [version, kind] of kinds)
    await until(async () => {
      const names = (await cluster().api.list(version, kind, namespace)).map(({ metadata }) => metadata.name);
      return names.every((name) => !/^job-/.test(name));
    });
}

/** Assigns different rights to the runner than the stack. */
async function withRights(
  rules: readonly { readonly resources: readonly string[] }[],
): Promise<{ readonly role: string; restore(): Promise<void> }> {
  const { api } = cluster();
  const path = `/apis/${rbac}/v1/namespaces/${namespace}/roles/${runnerName}`;
  const role = await api.get(`${rbac}/v1`, "Role", runnerName, namespace);
  const { spec } = await api.get("apps/v1", "Deployment", runnerName, catalogNamespace);
  const user = `system:serviceaccount:${catalogNamespace}:${spec.template.spec.serviceAccountName}`;
  const mayMakeSecrets = () => isAllowed(api, user, { namespace, verb: "create", resource: "secrets" });
  /** A change takes effect when the API server has received it. */
  const put = async (given: readonly { readonly resources: readonly string[] }[]) => {
    await api.request("PATCH", path, { rules: given }, "application/merge-patch+json");
    const expected = given.some(({ resources }) => resources.includes("secrets"));
    await until(async () => (await mayMakeSecrets()) === expected);
  };
  await put(rules);
  return {
    role: role.metadata.name,
    restore: async () => {
      await put(role.rules);
    },
  };
}

/** @param more Additional Ray clusters by name. */
async function startRunner(more?: Readonly<Record<string, object>>): Promise<Program> {
  const runner = await startDeployedRunner(deployed.url, more);
  runners.push(runner);
  return runner;
}

/** Runs a program like a user of Lance's clients on a different machine than Ray's. */
async function python(program: string, ...args: readonly string[]): Promise<void> {
  const settings = { TILTYARD_CATALOG_URL: deployed.url, TILTYARD_API_KEY: String(stack().outputs.catalogApiKey) };
  const env = { ...process.env, ...settings };
  const cwd = folderOf(cluster(), "client");
  await promisify(execFile)(required("TILTYARD_TEST_PYTHON"), [join(jobs, program), ...args], { env, cwd });
}
