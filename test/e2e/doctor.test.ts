import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { type DoctorTarget, examine, type Finding } from "../../client/doctor/checks.ts";
import { type ClusterOptions, parseParameters } from "../../client/ray/parameters.ts";
import { fromStackOutputs } from "../../client/stack-outputs.ts";
import { useCatalog } from "../support/catalog.ts";
import { startProgram } from "../support/process.ts";
import { folderOf, isOurs } from "./cluster.ts";
import type { KubernetesObject } from "./kubernetes/api.ts";
import { addNodes, removeNodes } from "./kubernetes/nodes.ts";
import { waitUntilReady } from "./kubernetes/ready.ts";
import { tokenOf } from "./kubernetes/token.ts";
import { platformNodes } from "./platform-nodes.ts";
import { installDefinitions } from "./providers/helm-release.ts";
import { identity, namespace, useSharedStack } from "./shared-stack.ts";

const rbac = "rbac.authorization.k8s.io/v1";
const { cluster, stack } = useSharedStack();
const catalog = useCatalog();
let outputs: Record<string, unknown>;
let healthy: DoctorTarget;

/** What whoever runs the doctor needs to look at everything, and to make Ray clusters. */
const lookerRules = [
  { apiGroups: [""], resources: ["namespaces", "serviceaccounts", "pods", "nodes"], verbs: ["get", "list"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["create", "delete"] },
  { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get"] },
  { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
  { apiGroups: [""], resources: ["pods/portforward"], verbs: ["create"] },
  { apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["create", "get", "list", "patch", "delete"] },
];

describe.runIf(isOurs)("tiltyard doctor", () => {
  beforeAll(async () => {
    const { api } = cluster();
    outputs = stack().outputs;
    await waitUntilReady(api, await api.create(operatorPod()));
    for (const object of looker()) await api.create(object);
    healthy = {
      config: cluster().kubeConfig({ name: "looker", token: await tokenOf(api, "default", "looker") }),
      // The account is bound to one of Google's, as on a cluster of theirs.
      parameters: parametersOf({ configMethod: "GKE_AUTH", region: "europe-west4" }),
      catalog: { url: catalog.url, apiKey: catalog.adminKey },
      makePod: false,
    };
  });

  test("finds nothing wrong with what a stack makes", async () => {
    const findings = await examine({ ...healthy, ...withPod({ identity: "ray" }) });
    expect(findings.filter(({ result }) => result !== "ok")).toEqual([]);
    expect(await podsOfDoctor()).toEqual([]);
  });

  /**
   * Something that is broken, and the checks that must show it. `break` breaks it on the cluster and gives
   * back how to repair it; `target` is what the doctor is told instead.
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
        ...["namespace", "service account", "identity of the service account"],
        ...["service account may get pods", "service account may change RayClusters"],
      ],
      target: () => ({ parameters: { ...healthy.parameters, serviceAccount: "nobody", namespace: "nowhere" } }),
    },
    {
      what: "Ray clusters are unknown",
      checks: ["operator knows RayClusters"],
      break: async () => {
        await remove("apiextensions.k8s.io/v1", "CustomResourceDefinition", "rayclusters.ray.io");
        return () => installDefinitions(cluster().api, join(cluster().tools.kuberay, "crds"));
      },
    },
    {
      what: "the operator is gone",
      checks: ["operator runs"],
      break: async () => {
        await remove("v1", "Pod", "kuberay-operator", namespace);
        return async () => waitUntilReady(cluster().api, await cluster().api.create(operatorPod()));
      },
    },
    {
      what: "the service account lost its right to pods",
      checks: ["service account may get pods"],
      break: () => withoutRule("geneva-service-account-role", "pods"),
    },
    {
      what: "the service account lost its right to Ray clusters",
      checks: ["service account may change RayClusters"],
      break: () => withoutRule("geneva-service-account-role", "rayclusters"),
    },
    {
      what: "the service account has another name",
      checks: [
        ...["service account", "identity of the service account"],
        ...["service account may get pods", "service account may change RayClusters"],
      ],
      target: () => ({ parameters: { ...healthy.parameters, serviceAccount: "nobody" } }),
    },
    {
      what: "the service account is nobody to the cloud",
      checks: ["identity of the service account"],
      break: async () => {
        await change("v1/serviceaccounts/geneva-service-account", {
          metadata: { annotations: { [Object.keys(identity)[0] ?? ""]: null } },
        });
        return () => change("v1/serviceaccounts/geneva-service-account", { metadata: { annotations: identity } });
      },
    },
    {
      what: "you lost your right to Ray clusters",
      checks: ["you may make RayClusters"],
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
      what: "the operator is too old",
      checks: ["operator runs"],
      break: async () => {
        await remove("v1", "Pod", "kuberay-operator", namespace);
        await cluster().api.create(operatorPod("1.0.0"));
        return async () => {
          await remove("v1", "Pod", "kuberay-operator", namespace);
          await waitUntilReady(cluster().api, await cluster().api.create(operatorPod()));
        };
      },
    },
    {
      what: "pods may not use the bucket",
      checks: ["pods reach the bucket"],
      target: () => withPod({ identity: "ray", problem: "AccessDenied" }),
    },
    {
      what: "the catalog is not where it is said to be",
      checks: ["catalog is ready"],
      target: () => ({ catalog: { url: "http://127.0.0.1:1", apiKey: catalog.adminKey } }),
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
      const broken = findings.filter(isBroken);
      expect(broken.map(({ check }) => check).sort()).toEqual([...checks].sort());
      for (const finding of broken) expect(finding.advice).toBeTruthy();
    } finally {
      await repair?.();
    }
    expect((await examine(healthy)).filter(isBroken)).toEqual([]);
  });

  test("takes nodes that the autoscaler can make for nodes that are there", async () => {
    const nodeSelectors = { ...healthy.parameters.nodeSelectors, workerCpu: { "example.com/none": "true" } };
    const target = { ...healthy, parameters: { ...healthy.parameters, nodeSelectors } };
    const nodeLimits = { head: 1, workerCpu: 5, workerGpu: 1 };
    expect((await examine(target)).filter(isBroken).map(({ check }) => check)).toEqual(["CPU worker nodes"]);
    expect((await examine({ ...target, nodeLimits })).filter(isBroken)).toEqual([]);
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

    const repair = await withoutRule("geneva-service-account-role", "pods");
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

function isBroken({ result }: Finding): boolean {
  return result === "failed" || result === "warning";
}

/** What the doctor's pod would tell of the bucket: nothing runs in the pods here. */
function withPod(told: { readonly identity: string; readonly problem?: string }): Partial<DoctorTarget> {
  return {
    makePod: true,
    onPod: async (name) => {
      const { api } = cluster();
      const pod = await waitUntilReady(api, await api.get("v1", "Pod", name, namespace));
      const message = JSON.stringify({ warehouse: "s3://tables/lance", ...told });
      const [container] = pod.status.containerStatuses;
      const terminated = { exitCode: 0, reason: "Completed", message };
      const status = { containerStatuses: [{ ...container, ready: false, state: { terminated } }] };
      const path = `/api/v1/namespaces/${namespace}/pods/${name}/status`;
      await api.request("PATCH", path, { status }, "application/merge-patch+json");
    },
  };
}

async function podsOfDoctor(): Promise<string[]> {
  const pods = await cluster().api.list("v1", "Pod", namespace);
  return pods.map(({ metadata }) => metadata.name).filter((name) => name.startsWith("tiltyard-doctor-"));
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

/** A merge patch of an object; its path begins with `v1/` when it is in the namespace. */
function change(path: string, patch: object) {
  const address = path.startsWith("v1/") ? `namespaces/${namespace}/${path.slice(3)}` : path;
  return cluster().api.request("PATCH", `/api/v1/${address}`, patch, "application/merge-patch+json");
}

async function remove(apiVersion: string, kind: string, name: string, where?: string): Promise<void> {
  await cluster().api.delete(await cluster().api.get(apiVersion, kind, name, where));
}

/** Takes the rule for a resource out of a cluster role. @returns Puts it back. */
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

/** The operator is a process here; on a real cluster it is a pod that its chart labels so. */
function operatorPod(version = "1.6.2"): KubernetesObject {
  const labels = { "app.kubernetes.io/name": "kuberay-operator" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "kuberay-operator", namespace, labels },
    spec: { containers: [{ name: "operator", image: `quay.io/kuberay/operator:v${version}` }] },
  };
}
