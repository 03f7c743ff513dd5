import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CatalogClient,
  createCatalogClient,
  createManagementClient,
  type Job,
  type ManagementClient,
  submitTracked,
} from "../../../client/index.ts";
import type { LocalRay } from "../../../client/ray/local-ray.ts";
import { required, startRay } from "../../interop/servers.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { type DeployedCatalog, startDeployedCatalog } from "./deployed-catalog.ts";
import { catalogNamespace, cluster, stack } from "./shared-stack.ts";

const folder = temporaryFolder("tiltyard-catalog-");
const jobs = join(import.meta.dirname, "jobs");

let pod: DeployedCatalog["pod"];
let service: DeployedCatalog["service"];
let localPath: DeployedCatalog["localPath"];
let url: string;
/** The environment by which Python finds the catalog. */
let settings: Record<string, string>;
let ray: LocalRay;
let catalog: CatalogClient;
let management: ManagementClient;

describe("the catalog that a stack deploys", () => {
  beforeAll(async () => {
    const { catalogApiKey } = stack().outputs;
    const rayStarts = startRay();
    ({ pod, service, localPath, url } = await startDeployedCatalog());
    settings = { TILTYARD_CATALOG_URL: url, TILTYARD_API_KEY: String(catalogApiKey) };
    catalog = createCatalogClient({ url, apiKey: String(catalogApiKey) });
    management = createManagementClient({ url, apiKey: String(catalogApiKey) });
    await catalog.createNamespace({ id: ["films"] });
    await createTables("films$good=number", "films$bad=price");
    ray = await rayStarts;
  });
  afterAll(async () => {
    service?.child.kill("SIGKILL");
    await Promise.all([service?.finished, ray?.[Symbol.asyncDispose]()]);
  });

  test("listens on the port that its pod, its service and the stack's output name", async () => {
    const [container] = pod.containers;
    const [port] = container.ports;
    expect(port).toMatchObject({ name: "http", containerPort: Number(settingOf("TILTYARD_PORT")) });
    const { spec } = await cluster().api.get("v1", "Service", "tiltyard-catalog", catalogNamespace);
    expect(spec.ports).toEqual([expect.objectContaining({ port: port.containerPort, targetPort: port.name })]);
    const { catalogUrl } = stack().outputs;
    expect(catalogUrl).toBe(`http://tiltyard-catalog.${catalogNamespace}.svc:${port.containerPort}`);
  });

  test("answers the probes of its pod", async () => {
    const [{ startupProbe, livenessProbe, readinessProbe }] = pod.containers;
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
      expect(httpGet.port).toBe("http");
      expect((await fetch(url + httpGet.path)).status).toBe(200);
    }
  });

  test("keeps its database on the pod's volume, and lets in callers with the stack's key alone", async () => {
    expect(existsSync(localPath("/data/catalog.sqlite"))).toBe(true);
    expect(pod.containers[0].volumeMounts).toContainEqual({ name: "data", mountPath: "/data" });
    const stranger = createCatalogClient({ url, apiKey: "another", retries: 0 });
    await expect(stranger.listNamespaces({ id: [] })).rejects.toMatchObject({ status: 401 });
    expect((await catalog.listNamespaces({ id: [] })).namespaces).toEqual(["films"]);
  });

  test("follows a job that fills a column from Queued over Running to Succeeded", async () => {
    const { id, transaction, submitted, open } = await backfillOf("good");
    expect((await describeTransaction(transaction)).status).toBe("Queued");
    const { job, done } = await submitted();
    await printed(job, "begun");
    expect(await describeTransaction(transaction)).toMatchObject({
      status: "Running",
      properties: { ray_job_id: job.id },
    });
    const before = await versionsOf(id);
    open();
    expect((await done).status).toBe("SUCCEEDED");
    expect((await describeTransaction(transaction)).status).toBe("Succeeded");
    // The catalog committed the data of the job.
    const after = await versionsOf(id);
    expect([before, after]).toEqual([[1], [2, 1]]);
    await printed(job, "filled 2 [0, 1, 4, 9, 16]");
  });

  test("reports the reason of a failed job, whose changes are discarded", async () => {
    const { id, transaction, submitted, open } = await backfillOf("bad");
    const { job, done } = await submitted();
    await printed(job, "begun");
    expect((await describeTransaction(transaction)).status).toBe("Running");
    open();
    expect((await done).status).toBe("FAILED");
    const { status, properties } = await describeTransaction(transaction);
    expect(status).toBe("Failed");
    // The table has no column of the name that the job reads.
    expect(properties.reason).toContain("number");
    expect(await versionsOf(id)).toEqual([1]);
  });

  test("stops in order within the grace period of its pod", async () => {
    const start = performance.now();
    service.child.kill("SIGTERM");
    expect(await service.finished).toMatchObject({ code: 0 });
    const preStopSeconds = pod.containers[0].lifecycle.preStop.sleep.seconds;
    expect((performance.now() - start) / 1000 + preStopSeconds).toBeLessThan(pod.terminationGracePeriodSeconds);
  });
});

function settingOf(variable: string): string {
  return pod.containers[0].env.find(({ name }: { name: string }) => name === variable)?.value;
}

/** Creates tables like a user of pylance on a different machine than Ray's. */
async function createTables(...tables: readonly string[]): Promise<void> {
  const env = { ...process.env, ...settings };
  await promisify(execFile)(required("TILTYARD_TEST_PYTHON"), [join(jobs, "create_tables.py"), ...tables], { env });
}

/** Opens a job that fills a column of a table and waits for `open` after its start. */
async function backfillOf(name: string) {
  const id = ["films", name];
  const gate = join(folder, `${name}.gate`);
  const { job_id: transaction } = await management.openJob({ id, column: "squared" });
  const request = {
    entrypoint: `python backfill.py '${id.join("$")}' '${gate}'`,
    workingDirectory: jobs,
    runtimeEnv: { env_vars: settings },
  };
  return {
    id,
    transaction,
    submitted: () => submitTracked(ray.jobs, request, { catalog, transactionId: transaction }),
    open: () => writeFileSync(gate, ""),
  };
}

function describeTransaction(id: string) {
  return catalog.describeTransaction({ id: id.split("$") });
}

async function versionsOf(id: readonly string[]): Promise<number[]> {
  const { versions } = await catalog.listTableVersions({ id: [...id], descending: true });
  return versions.map(({ version }) => version);
}

/** Resolves when the job has printed a line that contains the text. */
async function printed(job: Job, text: string): Promise<void> {
  for await (const line of job.logs()) if (line.includes(text)) return;
  throw new Error(`the job ended before it printed ${text}`);
}
