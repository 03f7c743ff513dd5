import { Table as ArrowTable, Field, List, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { beforeAll, describe, expect, test } from "vitest";
import { useCatalog } from "../support/catalog.ts";
import { functionColumns, registerFunction } from "../support/functions.ts";
import { createFilms } from "../support/rows.ts";

const catalog = useCatalog({ TILTYARD_RAY_CLUSTERS: "default,gpu" });

const worker = { name: "w", num_cpus: 8, memory: "32Gi", num_gpus: 1, min_replicas: 0, max_replicas: 4 };
const ofOperator = { service_account: "admin", image: "evil", node_selector: { a: "b" }, namespace: "kube-system" };
const kuberay = (more: object = {}) =>
  JSON.stringify({
    ...ofOperator,
    head_group: { ...ofOperator, num_cpus: 2, memory: "4Gi", k8s_spec_override: null, ...more },
    worker_groups: [{ ...ofOperator, ...worker, k8s_spec_override: {} }],
  });

let id: string[];
beforeAll(async () => {
  id = await createFilms(catalog);
  await catalog.call("alterTableAddColumns", { id, new_columns: [{ name: "twice", computed: "id * 2" }] });
  await catalog.call("createNamespace", { id: ["__system"] });
  const define = async (name: string, rows: readonly Readonly<Record<string, unknown>>[]) => {
    const columns = Object.keys(rows[0] ?? {}).map((column) => {
      const type = column === "pip" ? new List(new Field("item", new Utf8(), true)) : new Utf8();
      return [
        column,
        vectorFromArray(
          rows.map((row) => row[column]),
          type,
        ),
      ];
    });
    const body = tableToIPC(new ArrowTable(Object.fromEntries(columns)), "stream");
    expect((await catalog.call("createTable", { id: ["__system", name] }, { body })).status).toBe(200);
  };
  await define("geneva_manifests", [
    { name: "m1", pip: ["numpy"], env_vars: '{"A":"1"}', conda: "{}", created_by: "ann" },
    { name: "m2's", pip: ["pandas", "torch"], env_vars: "{}", conda: "{}", created_by: "ann" },
    { name: "broken", pip: ["numpy"], env_vars: "{", conda: "{}", created_by: "ann" },
    { name: "deep", pip: ["numpy"], env_vars: "{}", conda: "[".repeat(20_000) + "]".repeat(20_000), created_by: "ann" },
    { name: "long", pip: ["numpy"], env_vars: `{"A":"${"1".repeat(5_000_000)}"}`, conda: "{}", created_by: "ann" },
  ]);
  const cluster = (name: string, definition: string, cluster_type = "KUBE_RAY") => ({
    name,
    cluster_type,
    kuberay: definition,
  });
  await define("geneva_cluster_definitions", [
    cluster("big", kuberay()),
    cluster("gpu", kuberay()),
    cluster("root", kuberay({ k8s_spec_override: { hostNetwork: true } })),
    cluster("elsewhere", "null", "EXTERNAL_RAY"),
    cluster("tiny", JSON.stringify({ head_group: { num_cpus: 0, memory: "1Gi" }, worker_groups: [] })),
  ]);
});

const backfill = (fields: object, key?: string) =>
  catalog.call("alterTableBackfillColumns", { id, column: "twice", ...fields }, key === undefined ? {} : { key });

/** Opens a job, and cancels it, so that the next one can open. */
async function parametersOf(fields: object, key?: string) {
  const { status, body } = await backfill(fields, key);
  expect(status).toBe(202);
  const job = body.job_id.split("$");
  const { parameters } = (await catalog.call("cancelJob", { id: job })).body.job;
  return parameters;
}

describe("a request for a job", () => {
  test("names a manifest that Geneva has defined", async () => {
    const { manifest = "" } = await parametersOf({ manifest: "m1" });
    expect(JSON.parse(manifest)).toEqual({ name: "m1", pip: ["numpy"], env_vars: { A: "1" }, conda: {} });
    const { manifest: other = "" } = await parametersOf({ manifest: "m2's" });
    expect(JSON.parse(other)).toMatchObject({ pip: ["pandas", "torch"] });
    expect(await parametersOf({ manifest: '{"pip": []}' })).toMatchObject({ manifest: '{"pip": []}' });
  });

  test("names a cluster that Geneva has defined, of which the operator's policy leaves the amounts", async () => {
    const { cluster, cluster_definition = "" } = await parametersOf({ cluster: "big" });
    expect(cluster).toBe("big");
    expect(JSON.parse(cluster_definition)).toEqual({
      head_group: { num_cpus: 2, memory: "4Gi" },
      worker_groups: [{ ...worker, idle_timeout_seconds: 60 }],
    });
  });

  test("names a cluster of the runner, which a definition of that name does not replace", async () => {
    expect(await parametersOf({ cluster: "gpu" })).toEqual({ column: "twice", cluster: "gpu" });
  });

  test("runs a Function with a GPU on the cluster gpu, unless it names another one", async () => {
    const id = await createFilms(catalog);
    const [namespace = ""] = id;
    const plain = await registerFunction(catalog, [namespace, "f"]);
    const version = await registerFunction(catalog, [namespace, "f"], { runtime: { kind: "python_v2", gpu: true } });
    expect([plain.version, version.version]).toEqual(["1", "2"]);
    const columns = functionColumns(version, { value: "id" }, { $value: "c" });
    expect((await catalog.call("remoteAlterTableAddColumns", { id, ...columns })).status).toBe(200);
    for (const cluster of [undefined, "default"]) {
      const { job_id } = (await catalog.call("alterTableBackfillColumns", { id, column: "c", cluster })).body;
      const job = job_id.split("$");
      const { parameters } = (await catalog.call("describeJob", { id: job })).body.job;
      expect(parameters.cluster).toBe(cluster ?? "gpu");
      expect((await catalog.call("describeJobFunction", { id: job })).body.function.gpu).toBe(true);
      await catalog.call("cancelJob", { id: job });
    }
  });

  test.each([
    ["an unknown manifest", { manifest: "m3" }, /manifest: "m3" is not a definition .* in __system\$geneva_manifests/],
    ["a manifest of JSON that is none", { manifest: "[]" }, /manifest: "\[\]" is not a definition/],
    ["a definition that is not valid", { manifest: "broken" }, /"broken" is not valid: env_vars: must be JSON/],
    ["a definition that nests too deep", { manifest: "deep" }, /manifest: nests too deep/],
    ["a definition of several megabytes", { manifest: "long" }, /more than 4194304 characters together/],
    [
      "an unknown cluster",
      { cluster: "c" },
      /cluster: "c" is not a definition .*, and not one of the runner's in TILTYARD_RAY_CLUSTERS: default, gpu/,
    ],
    ["a cluster with free Kubernetes fields", { cluster: "root" }, /"root" has k8s_spec_override/],
    ["a cluster elsewhere", { cluster: "elsewhere" }, /"elsewhere" is a Ray cluster outside this platform/],
    ["a cluster of invalid amounts", { cluster: "tiny" }, /"tiny" is not valid: head_group.num_cpus/],
  ])("is 400 for %s", async (_, fields, message) => {
    const expected = { status: 400, detail: expect.stringMatching(message) };
    expect((await backfill(fields)).error).toMatchObject(expected);
    if ("cluster" in fields)
      expect((await catalog.call("compactTable", { id, ...fields })).error).toMatchObject(expected);
  });

  test("finds only definitions that the caller may read", async () => {
    const stranger = await catalog.keyFor("stranger", { [id[0] ?? ""]: "writer" });
    expect((await backfill({ manifest: "m1" }, stranger)).error).toMatchObject({ status: 400 });
    const ann = await catalog.keyFor("ann", { [id[0] ?? ""]: "writer", __system: "reader" });
    expect(await parametersOf({ manifest: "m1" }, ann)).toHaveProperty("manifest");
    const listed = await catalog.call("listJobDefinitions", { id: id.slice(0, 1) }, { key: stranger });
    expect(listed.body).toEqual({ manifests: [], clusters: [], runner_clusters: ["default", "gpu"] });
  });
});

test("the names of definitions are listed", async () => {
  expect((await catalog.call("listJobDefinitions", { id: [] })).body).toEqual({
    manifests: ["broken", "deep", "long", "m1", "m2's"],
    clusters: ["big", "elsewhere", "gpu", "root", "tiny"],
    runner_clusters: ["default", "gpu"],
  });
});
