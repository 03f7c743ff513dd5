import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { CoreV1Api, type KubeConfig } from "@kubernetes/client-node";
import { type ClusterOptions, parseParameters } from "@tiltyard/platform";
import { beforeAll, expect, test } from "vitest";
import { type DoctorTarget, examine, type Finding } from "../../../client/doctor/checks.ts";
import { fromStackOutputs } from "../../../client/stack-outputs.ts";
import { useCatalog } from "../../support/catalog.ts";
import { startProgram } from "../../support/process.ts";
import { describeOnOurs, folderOf } from "../cluster.ts";
import type { KubernetesObject } from "../kubernetes/api.ts";
import { installDefinitions, rayDefinitions } from "../kubernetes/definitions.ts";
import { addNodes, removeNodes } from "../kubernetes/nodes.ts";
import { tokenOf } from "../kubernetes/token.ts";
import { platformNodes } from "../platform-nodes.ts";
import { until } from "../until.ts";
import { cluster, identity, namespace, serviceAccount, stack } from "./shared-stack.ts";

const rbac = "rbac.authorization.k8s.io/v1";
const catalog = useCatalog();
let outputs: Record<string, unknown>;
let healthy: DoctorTarget & { readonly config: KubeConfig };
/** The folder that replaces the bucket. */
let warehouse: string;

/** The rights that the doctor needs for all checks, and to create Ray clusters. */
const lookerRules = [
  { apiGroups: [""], resources: ["namespaces", "serviceaccounts", "pods", "nodes"], verbs: ["get", "list"] },
  { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get"] },
  { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
  { apiGroups: [""], resources: ["pods/portforward"], verbs: ["create"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["create", "delete"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["get"] },
  { apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["create", "get", "list", "patch", "delete"] },
];

describeOnOurs("tiltyard doctor", "nodes to break, and rights to take away", () => {
  beforeAll(async () => {
    const { api } = cluster();
    outputs = stack().outputs;
    await api.create(operatorPod());
    warehouse = join(folderOf(cluster(), "doctor"), "warehouse");
    mkdirSync(warehouse, { recursive: true });
    for (const object of looker()) await api.create(object);
    healthy = {
      config: cluster().kubeConfig({ name: "looker", token: await tokenOf(api, "default", "looker") }),
      // The account is bound to one of Google's, as on a real cluster of GKE.
      parameters: parametersOf({ configMethod: "GKE_AUTH", region: "europe-west4" }),
      catalog: { url: catalog.url, apiKey: catalog.adminKey },
      catalogNamespace: String(outputs.catalogNamespace),
      runsJobs: true,
      onPod: (name) => void runAsKubelet(name),
    };
  });

  test("finds no fault in a new stack", async () => {
    const findings = await examine(healthy);
    expect(findings.filter(({ result }) => result !== "ok")).toEqual([]);
    expect(findings.find(({ check }) => check === "pods reach the bucket")?.detail).toMatch(/warehouse, as user \w+$/);
    const { items } = await healthy.config.makeApiClient(CoreV1Api).listNamespacedPod({ namespace });
    expect(items.map(({ metadata }) => metadata?.name)).not.toContainEqual(expect.stringMatching(/^tiltyard-doctor/));
  });

  /**
   * A fault with the checks that must detect it. `break` causes it on the cluster and returns its repair; `target`
   * replaces the arguments of the doctor.
   */
  interface Breakage {
    readonly what: string;
    readonly checks: readonly string[];
    readonly break?: () => Promise<() => Promise<unknown>>;
    readonly target?: () => Partial<DoctorTarget>;
  }

  const breakages: readonly Breakage[] = [
    {
      what: "the namespace is not there, and with it all that is in it",
      checks: [
        ...["namespace", "service account", "identity of the service account", "pods reach the bucket"],
        ...["service account may get pods", "service account may change RayClusters"],
      ],
      target: () => ({ parameters: { ...healthy.parameters, serviceAccount: "absent", namespace: "nowhere" } }),
    },
    {
      what: "Ray clusters are unknown",
      checks: ["definition of RayClusters"],
      break: async () => {
        await remove("apiextensions.k8s.io/v1", "CustomResourceDefinition", "rayclusters.ray.io");
        return () => installDefinitions(cluster().api, rayDefinitions(join(cluster().tools.kuberay, "crds")));
      },
    },
    {
      what: "the operator is gone",
      checks: ["operator runs"],
      break: async () => {
        await remove("v1", "Pod", "kuberay-operator", namespace);
        return () => cluster().api.create(operatorPod());
      },
    },
    {
      what: "the operator is too old",
      checks: ["operator runs"],
      break: async () => {
        await remove("v1", "Pod", "kuberay-operator", namespace);
        await cluster().api.create(operatorPod("v1.0.0"));
        return async () => {
          await remove("v1", "Pod", "kuberay-operator", namespace);
          await cluster().api.create(operatorPod());
        };
      },
    },
    {
      what: "the service account lost its right to pods",
      checks: ["service account may get pods"],
      break: () => withoutRule(`${serviceAccount}-role`, "pods"),
    },
    {
      what: "the service account lost its right to Ray clusters",
      checks: ["service account may change RayClusters"],
      break: () => withoutRule(`${serviceAccount}-role`, "rayclusters"),
    },
    {
      what: "the service account has another name",
      checks: [
        ...["service account", "identity of the service account", "pods reach the bucket"],
        ...["service account may get pods", "service account may change RayClusters"],
      ],
      target: () => ({ parameters: { ...healthy.parameters, serviceAccount: "absent" } }),
    },
    {
      what: "the service account has no identity of the cloud",
      checks: ["identity of the service account"],
      break: async () => {
        await change(`v1/serviceaccounts/${serviceAccount}`, {
          metadata: { annotations: { [Object.keys(identity)[0] ?? ""]: null } },
        });
        return () => change(`v1/serviceaccounts/${serviceAccount}`, { metadata: { annotations: identity } });
      },
    },
    {
      what: "you lost your right to Ray clusters",
      checks: ["you may create RayClusters"],
      break: () => withoutRule("looker", "rayclusters"),
    },
    {
      what: "a head node may be taken away",
      checks: ["head nodes"],
      break: () => withNode({ name: "spot-head", labels: { "geneva.lancedb.com/ray-head": "true" }, spot: true }),
    },
    {
      what: "no node has the label of CPU workers",
      checks: ["CPU worker nodes"],
      break: async () => {
        const label = (value: string | null) => async () => {
          for (const name of platformNodes.workerCpu)
            await change(`nodes/${name}`, { metadata: { labels: { "geneva.lancedb.com/ray-worker-cpu": value } } });
        };
        await label(null)();
        return label("true");
      },
    },
    {
      what: "a GPU node offers no GPU",
      checks: ["GPU worker nodes"],
      break: () => withNode({ name: "no-gpu", labels: { "geneva.lancedb.com/ray-worker-gpu": "true" } }),
    },
    {
      what: "the bucket cannot be written",
      checks: ["pods reach the bucket"],
      break: async () => {
        const [folder, aside] = [warehouse, `${warehouse} aside`];
        renameSync(folder, aside);
        writeFileSync(folder, "not a folder");
        return async () => {
          rmSync(folder);
          renameSync(aside, folder);
        };
      },
    },
    {
      what: "the catalog is not where it is said to be",
      checks: ["catalog is ready", "key of the catalog"],
      target: () => ({ catalog: { url: "http://127.0.0.1:1", apiKey: catalog.adminKey } }),
    },
    {
      what: "the runner of jobs is gone",
      checks: ["runner of jobs"],
      break: async () => {
        const scale = async (replicas: number) => {
          const path = `/apis/apps/v1/namespaces/${outputs.catalogNamespace}/deployments/tiltyard-runner`;
          await cluster().api.request("PATCH", path, { spec: { replicas } }, "application/merge-patch+json");
          await until(async () => (await runnerPods()).filter(isReady).length === replicas);
        };
        await scale(0);
        return () => scale(1);
      },
    },
    {
      what: "the catalog does not know the key",
      checks: ["key of the catalog"],
      target: () => ({ catalog: { url: catalog.url, apiKey: "tiltyard_wrong" } }),
    },
  ];

  test.each(breakages)("says so when $what, and nothing else", async ({ checks, break: breakIt, target }) => {
    const repair = await breakIt?.();
    try {
      const findings = await examine({ ...healthy, ...target?.() });
      const broken = findings.filter(({ result }) => result !== "ok");
      expect(broken.map(({ check }) => check).sort()).toEqual([...checks].sort());
      // A check that depends on another broken part is skipped.
      for (const { check, result } of broken)
        expect([check, result]).toEqual([check, expect.stringMatching(/^(warning|failed|skipped)$/)]);
    } finally {
      await repair?.();
    }
    const repaired = await examine({ ...healthy, makePod: false });
    expect(repaired.filter(({ result }) => result === "warning" || result === "failed")).toEqual([]);
  });

  test("counts the nodes that the autoscaler can create", async () => {
    const nodeSelectors = { ...healthy.parameters.nodeSelectors, workerCpu: { "example.com/none": "true" } };
    const target = { ...healthy, makePod: false, parameters: { ...healthy.parameters, nodeSelectors } };
    const missing = async (more: Partial<DoctorTarget>) =>
      (await examine({ ...target, ...more })).filter(({ result }) => result === "warning").map(({ check }) => check);
    expect(await missing({})).toEqual(["CPU worker nodes"]);
    expect(await missing({ nodeLimits: { head: 1, workerCpu: 5, workerGpu: 1 } })).toEqual([]);
  });

  test("has a breakage for each of its checks", async () => {
    const broken = new Set(breakages.flatMap(({ checks }) => checks));
    expect((await examine(healthy)).map(({ check }) => check).filter((check) => !broken.has(check))).toEqual([]);
  });

  test("as a command ends with 0 for a good deployment and with 5 for a broken one, and says why", async () => {
    const good = await runDoctor();
    expect([good.code, good.stderr]).toEqual([0, ""]);
    expect(good.stdout).toMatch(/^ok {2}service account may get pods +get, list, watch$/m);
    expect(good.stdout).not.toContain("XX");

    const repair = await withoutRule(`${serviceAccount}-role`, "pods");
    try {
      const broken = await runDoctor();
      expect(broken.code).toBe(5);
      expect(broken.stdout.match(/^XX.*$/gm)).toEqual([
        expect.stringMatching(/^XX {2}service account may get pods +it may not get, list, watch pods$/),
      ]);
      const asJson = await runDoctor("--json");
      expect(asJson.code).toBe(5);
      const findings: readonly Finding[] = JSON.parse(asJson.stdout);
      expect(findings.filter(({ result }) => result === "failed").map(({ check }) => check)).toEqual([
        "service account may get pods",
      ]);
    } finally {
      await repair();
    }
  });
});

function parametersOf(more: Partial<ClusterOptions>) {
  return parseParameters({ ...fromStackOutputs(outputs), name: "doctor", ...more });
}

/** Simulates a kubelet: runs the pod's program with its arguments and settings, and writes its result. */
async function runAsKubelet(name: string): Promise<void> {
  const { api } = cluster();
  const { spec } = await api.get("v1", "Pod", name, namespace);
  expect(spec.serviceAccountName).toBe(serviceAccount);
  const [{ args, env, image }] = spec.containers;
  const log = join(folderOf(cluster(), "doctor"), `${name}.json`);
  const settings = Object.fromEntries(env.map((each: { name: string; value: string }) => [each.name, each.value]));
  expect(settings.TILTYARD_WAREHOUSE).toBe(outputs.bucketUri);
  const { code } = await startProgram(
    ["service/main.ts", ...args.map((each: string) => (each === "/dev/termination-log" ? log : each))],
    { ...settings, TILTYARD_WAREHOUSE: pathToFileURL(warehouse).href },
  ).finished;
  const terminated = { exitCode: code, message: existsSync(log) ? readFileSync(log, "utf8") : "" };
  const status = { name: "check", image, imageID: "", ready: false, restartCount: 0, state: { terminated } };
  await api.request(
    "PATCH",
    `/api/v1/namespaces/${namespace}/pods/${name}/status`,
    { status: { phase: code === 0 ? "Succeeded" : "Failed", containerStatuses: [status] } },
    "application/merge-patch+json",
  );
}

function runDoctor(...options: readonly string[]) {
  const path = join(folderOf(cluster(), "doctor"), "outputs.json");
  writeFileSync(path, JSON.stringify(outputs));
  const environment = {
    KUBECONFIG: cluster().kubeconfigPath,
    TILTYARD_CATALOG_URL: catalog.url,
    TILTYARD_API_KEY: catalog.adminKey,
  };
  return startProgram(["client/main.ts", "doctor", "--stack-outputs", path, ...options], environment).finished;
}

/** Applies a merge patch to an object. A path in the namespace begins with `v1/`. */
function change(path: string, patch: object) {
  const address = path.startsWith("v1/") ? `namespaces/${namespace}/${path.slice(3)}` : path;
  return cluster().api.request("PATCH", `/api/v1/${address}`, patch, "application/merge-patch+json");
}

async function remove(apiVersion: string, kind: string, name: string, where?: string): Promise<void> {
  await cluster().api.delete(await cluster().api.get(apiVersion, kind, name, where));
}

/** Removes the rule for a resource from a cluster role. @returns A function that restores it. */
async function withoutRule(role: string, resource: string): Promise<() => Promise<unknown>> {
  const { api } = cluster();
  const { rules } = await api.get(rbac, "ClusterRole", role);
  const set = (now: readonly object[]) =>
    api.request("PATCH", `/apis/${rbac}/clusterroles/${role}`, { rules: now }, "application/merge-patch+json");
  await set(rules.filter(({ resources }: { resources: string[] }) => !resources.includes(resource)));
  return () => set(rules);
}

async function withNode(node: Parameters<typeof addNodes>[1][number]): Promise<() => Promise<unknown>> {
  await addNodes(cluster().api, [node]);
  return () => removeNodes(cluster().api, [node.name]);
}

function looker() {
  const metadata = { name: "looker" };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { ...metadata, namespace: "default" } },
    { apiVersion: rbac, kind: "ClusterRole", metadata, rules: lookerRules },
    {
      apiVersion: rbac,
      kind: "ClusterRoleBinding",
      metadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "looker" },
      subjects: [{ kind: "ServiceAccount", name: "looker", namespace: "default" }],
    },
  ];
}

/** Returns the pod of an operator, which is a process here, with the label of its chart. */
function operatorPod(version = "v1.6.2"): KubernetesObject {
  const labels = { "app.kubernetes.io/name": "kuberay-operator" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "kuberay-operator", namespace, labels },
    spec: { containers: [{ name: "operator", image: `quay.io/kuberay/operator:${version}` }] },
  };
}

function runnerPods(): Promise<readonly KubernetesObject[]> {
  return cluster().api.list("v1", "Pod", String(outputs.catalogNamespace), "app.kubernetes.io/name=tiltyard-runner");
}

function isReady({ status }: KubernetesObject): boolean {
  return status?.conditions?.some(({ type, status: is }: Record<string, string>) => type === "Ready" && is === "True");
}
