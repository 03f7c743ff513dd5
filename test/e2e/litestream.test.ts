/** Litestream's own program with the settings of a stack, and the runbook that restores the catalog. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  CopyObjectCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  ListObjectsV2Command,
  type S3Client,
} from "@aws-sdk/client-s3";
import Database from "better-sqlite3";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { unusedPort } from "../../client/unused-port.ts";
import { catalogDashboard } from "../../infra/components/monitoring/catalog-dashboard.ts";
import { versions } from "../../infra/versions.ts";
import type { TestServer } from "../interop/servers.ts";
import { startTestCatalog, type TestCatalog } from "../support/catalog.ts";
import { runCatalogCommand } from "../support/process.ts";
import { missingOf } from "../support/promql.ts";
import { deployed } from "../support/stack.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { administrator, clientOf, region, startSeaweed } from "./seaweedfs/server.ts";
import { prepareTools } from "./tools.ts";
import { until } from "./until.ts";

const bucket = "backups";
const prefix = "prod/litestream/";
const folder = temporaryFolder("tiltyard-litestream-");
/** The folders of this machine by the folders of the pod. */
const mounts: Readonly<Record<string, string>> = {
  "/data": join(folder, "data"),
  "/etc/litestream": join(folder, "settings"),
  "/tmp": join(folder, "tmp"),
};

describe("the copies of the catalog by Litestream", () => {
  const program = join(prepareTools().programs, "litestream");
  let server: TestServer;
  let s3: S3Client;
  let environment: Record<string, string>;
  let containers: { readonly restore: string[]; readonly replicate: string[] };
  let metricsPort: number;
  let pod: Pod | undefined;

  beforeAll(async () => {
    for (const path of Object.values(mounts)) mkdirSync(path);
    server = await startSeaweed(bucket);
    // A host with a name, like those of real stores. With an address, every client uses the bucket in the path.
    const url = server.url.replace("127.0.0.1", "localhost");
    environment = {
      // The variables of the secret that `catalog.environmentSecret` names.
      ...{ AWS_ENDPOINT_URL: url, AWS_REGION: region },
      ...{ AWS_ACCESS_KEY_ID: administrator.accessKeyId, AWS_SECRET_ACCESS_KEY: administrator.secretAccessKey },
    };
    s3 = clientOf(server, administrator);
    const catalog = { image: "registry.example.com/catalog:1", litestream: { bucket: `s3://${bucket}/prod` } };
    const { one } = await deployed("existing", { catalog, monitoring: { collector: "prometheus-operator" } });
    const { data }: { readonly data: Record<string, string> } = one(
      "kubernetes:core/v1:ConfigMap",
      "litestream",
    ).inputs;
    metricsPort = await unusedPort();
    for (const [file, content] of Object.entries(data))
      writeFileSync(here(`/etc/litestream/${file}`), here(content).replace('":9090"', `"127.0.0.1:${metricsPort}"`));
    const [restore, replicate] = one("kubernetes:apps/v1:StatefulSet").inputs.spec.template.spec.initContainers;
    containers = { restore: restore.args, replicate: replicate.args };
  });
  afterEach(() => pod?.stop());
  afterAll(() => server?.stop());

  test("are those of the stack's version", () => {
    expect(litestream(["version"]).stdout.trim()).toBe(`v${versions.litestream}`);
  });

  test("restore a lost volume before the catalog starts, with its last changes", async () => {
    pod = await startPod();
    await pod.catalog.call("createNamespace", { id: ["first"] });
    // Litestream opens a new database after a second, and copies nothing if it stops earlier.
    await until(() => copiedNamespaces().includes("first"));
    await pod.catalog.call("createNamespace", { id: ["films"] });
    const key = await pod.catalog.keyFor("ada", { films: "writer" });
    await pod.stop();
    loseVolume();
    pod = await startPod();
    expect((await pod.catalog.call("describeNamespace", { id: ["films"] }, { key })).status).toBe(200);
  });

  test("restore the catalog to a point in time by the runbook, and continue from there", async () => {
    pod = await startPod();
    await pod.catalog.call("createNamespace", { id: ["dropped"] });
    const key = await pod.catalog.keyFor("bob", { dropped: "writer" });
    await until(() => copiedNamespaces().includes("dropped"));
    const beforeTheMistake = new Date().toISOString();
    await pod.catalog.call("dropNamespace", { id: ["dropped"] });
    await pod.catalog.call("createNamespace", { id: ["later"] });
    await until(() => copiedNamespaces().includes("later"));
    await pod.stop();

    await runRestorePod(beforeTheMistake);
    await moveCopies();
    pod = await startPod();
    const statusOf = async (id: string) =>
      (await pod?.catalog.call("describeNamespace", { id: [id] }, { key }))?.status;
    expect([await statusOf("dropped"), await statusOf("films"), await statusOf("later")]).toEqual([200, 403, 403]);
    expect(namespacesOf(here("/data/catalog.sqlite"))).toEqual(["dropped", "films", "first"]);

    await pod.catalog.call("createNamespace", { id: ["afterwards"] });
    await until(() => copiedNamespaces().includes("afterwards"));
    await pod.stop();
    loseVolume();
    pod = await startPod();
    expect(namespacesOf(here("/data/catalog.sqlite"))).toEqual(["afterwards", "dropped", "films", "first"]);
  });

  test("appear in the metrics that the alert and the dashboard read, also while the store refuses copies", async () => {
    pod = await startPod();
    const { catalog } = pod;
    const uploads = () => metricValue('litestream_replica_operation_total{operation="PUT",replica_type="s3"}');
    const changes = () => metricValue(`litestream_txid{db="${here("/data/catalog.sqlite")}"}`);
    await until(async () => (await uploads()) > 0);
    expect(missingOf(catalogDashboard, await metrics()).filter((each) => each.startsWith("litestream_"))).toEqual([]);

    await s3.send(new DeleteBucketCommand({ Bucket: bucket }));
    const [copied, changed] = [await uploads(), await changes()];
    for (const id of ["while", "it", "fails"]) await catalog.call("createNamespace", { id: [id] });
    await until(async () => (await changes()) > changed);
    expect(await uploads()).toBe(copied);
    pod.kill();
  });

  async function metrics(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  }

  async function metricValue(series: string): Promise<number> {
    const line = (await metrics()).split("\n").find((each) => each.startsWith(`${series} `));
    return Number(line?.split(" ").at(-1));
  }

  interface Pod {
    readonly catalog: TestCatalog;
    /** Stops the catalog, and then Litestream, as Kubernetes does with a side car. */
    stop(): Promise<void>;
    /** Kills Litestream, which would try to copy the last changes for half a minute. */
    kill(): void;
  }

  /** Starts the containers of the catalog's pod in their order. */
  async function startPod(): Promise<Pod> {
    expect(litestream(containers.restore)).toMatchObject({ status: 0 });
    const copying = spawn(program, containers.replicate.map(here), { env: environment, stdio: "ignore" });
    const catalog = await startTestCatalog({
      TILTYARD_DATA_DIR: here("/data"),
      TILTYARD_DATABASE_URL: `sqlite:${here("/data/catalog.sqlite")}`,
      TILTYARD_WAREHOUSE: `file://${join(folder, "tables")}`,
    });
    let stopped: Promise<void> | undefined;
    const stop = async () => {
      await catalog.stop();
      await end(copying);
    };
    return { catalog, stop: () => (stopped ??= stop()), kill: () => copying.kill("SIGKILL") };
  }

  /** Runs the containers of the runbook's pod. */
  async function runRestorePod(timestamp: string): Promise<void> {
    const { spec } = parse(readFileSync("examples/restore-pod.yaml", "utf8"));
    const [{ args: copy }, { args: reset }] = spec.initContainers;
    const [restore] = spec.containers;
    const args: string[] = copy.map((arg: string) => arg.replace(/^-timestamp=.*/, `-timestamp=${timestamp}`));
    expect(args).toContain(`-timestamp=${timestamp}`);
    for (const each of [args, reset]) expect(litestream(each)).toMatchObject({ status: 0 });
    const [node, main, ...command] = restore.command;
    expect([node, main]).toEqual(["node", "service/main.ts"]);
    const env = restore.env.map(({ name, value }: Record<string, string>) => [name, here(value ?? "")]);
    expect(await runCatalogCommand(command.map(here), Object.fromEntries(env))).toMatchObject({ code: 0 });
  }

  function litestream(args: readonly string[]) {
    return spawnSync(program, args.map(here), { env: environment, encoding: "utf8" });
  }

  /** Returns the namespaces in the current copy. */
  function copiedNamespaces(): string[] {
    const copy = "/tmp/copy.sqlite";
    for (const suffix of ["", "-wal", "-shm"]) rmSync(here(`${copy}${suffix}`), { force: true });
    litestream(["restore", "-config", "/etc/litestream/litestream.yml", "-o", copy, "/data/catalog.sqlite"]);
    return namespacesOf(here(copy));
  }

  /** Moves the copies like `aws s3 mv`. */
  async function moveCopies(): Promise<void> {
    const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix }));
    expect(Contents.length).toBeGreaterThan(0);
    for (const { Key = "" } of Contents) {
      const target = Key.replace(prefix, "prod/litestream-before-restore/");
      await s3.send(new CopyObjectCommand({ Bucket: bucket, CopySource: `${bucket}/${Key}`, Key: target }));
      await s3.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
    }
  }
});

/** Replaces the folders of the pod by those of this machine. */
function here(text: string): string {
  const folders = Object.keys(mounts).join("|");
  return text.replace(new RegExp(`(?<![\\w/])(${folders})(?=/|"|$)`, "g"), (path) => mounts[path] ?? path);
}

function loseVolume(): void {
  rmSync(here("/data"), { recursive: true });
  mkdirSync(here("/data"));
}

function namespacesOf(file: string): string[] {
  const database = new Database(file, { readonly: true, fileMustExist: true });
  try {
    const rows = database.prepare<[], { name: string }>("select name from namespaces where name != '' order by name");
    return rows.all().map(({ name }) => name);
  } finally {
    database.close();
  }
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  if (child.kill()) await ended;
}
