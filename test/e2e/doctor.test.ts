import { beforeAll, describe, expect, test } from "vitest";
import { examine, type Finding } from "../../client/doctor/checks.ts";
import { parseParameters } from "../../client/ray/parameters.ts";
import { fromStackOutputs } from "../../client/stack-outputs.ts";
import { isOurs, useCluster } from "./cluster.ts";
import type { KubernetesObject } from "./kubernetes/api.ts";
import { addNodes, removeNodes } from "./kubernetes/nodes.ts";
import { addPlatformNodes, platformNodes } from "./platform-nodes.ts";
import { DeployedStack } from "./stack.ts";

const namespace = "lancedb";
const rbac = "rbac.authorization.k8s.io/v1";
const cluster = useCluster();
let options: ReturnType<typeof fromStackOutputs>;

describe.runIf(isOurs)("tiltyard doctor", () => {
  beforeAll(async () => {
    const { api, kubeconfigPath } = cluster();
    await addPlatformNodes(api, "existing");
    const stack = await DeployedStack.create(cluster(), "existing");
    await stack.up({ kubeconfig: kubeconfigPath, catalog: { enabled: false } });
    options = fromStackOutputs(await stack.plainOutputs());
    await api.create(operatorPod());
  });

  test("finds nothing wrong with what a stack makes", async () => {
    const findings = await diagnose();
    expect(findings.filter(({ result }) => result === "failed" || result === "warning")).toEqual([]);
  });

  const breakages: readonly { what: string; check: string; break: () => Promise<unknown> }[] = [
    {
      what: "the service account lost its right to pods",
      check: "service account may get pods",
      break: () => rule({ apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["get", "patch", "delete"] }),
    },
    {
      what: "the service account lost its right to Ray clusters",
      check: "service account may change RayClusters",
      break: () => rule({ apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] }),
    },
    {
      what: "the service account was deleted",
      check: "service account",
      break: () => remove("v1", "ServiceAccount", "geneva-service-account", namespace),
    },
    {
      what: "a head node may be taken away",
      check: "head nodes",
      break: () =>
        addNodes(cluster().api, [{ name: "spot-head", labels: { "geneva.lancedb.com/ray-head": "true" }, spot: true }]),
    },
    {
      what: "a GPU node offers no GPU",
      check: "GPU worker nodes",
      break: () =>
        addNodes(cluster().api, [{ name: "no-gpu", labels: { "geneva.lancedb.com/ray-worker-gpu": "true" } }]),
    },
    {
      what: "there is no CPU worker node",
      check: "CPU worker nodes",
      break: () => removeNodes(cluster().api, platformNodes.workerCpu),
    },
    {
      what: "the operator is gone",
      check: "operator runs",
      break: () => remove("v1", "Pod", "kuberay-operator", namespace),
    },
    {
      what: "Ray clusters are unknown",
      check: "operator knows RayClusters",
      break: () => remove("apiextensions.k8s.io/v1", "CustomResourceDefinition", "rayclusters.ray.io"),
    },
  ];

  test.each(breakages)("says so when $what, and nothing else", async ({ check, break: breakIt }) => {
    const before = await diagnose();
    await breakIt();
    const after = await diagnose();
    const worse = after.filter(({ result }, index) => result !== before[index]?.result);
    expect(worse.map((finding) => finding.check)).toEqual([check]);
    expect(worse[0]?.result).not.toBe("ok");
    expect(worse[0]?.advice).toBeTruthy();
    await repair();
  });
});

function diagnose(): Promise<readonly Finding[]> {
  return examine({ config: cluster().kubeConfig(), parameters: parseParameters({ ...options, name: "doctor" }) });
}

async function rule(only: object): Promise<void> {
  const role = {
    apiVersion: rbac,
    kind: "ClusterRole",
    metadata: { name: "geneva-service-account-role" },
    rules: [only],
  };
  await cluster().api.apply(role, { manager: "tiltyard-e2e", force: true });
}

async function remove(apiVersion: string, kind: string, name: string, where?: string): Promise<void> {
  await cluster().api.delete(await cluster().api.get(apiVersion, kind, name, where));
}

/** The role and the service account as the stack makes them; each of the rest is looked at once. */
async function repair(): Promise<void> {
  const { api } = cluster();
  const rules = [
    { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] },
    { apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["get", "patch", "delete"] },
  ];
  const role: KubernetesObject = {
    apiVersion: rbac,
    kind: "ClusterRole",
    metadata: { name: "geneva-service-account-role" },
    rules,
  };
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "geneva-service-account", namespace } };
  for (const object of [role, account]) await api.apply(object, { manager: "tiltyard-e2e", force: true });
}

/** The operator is a process here; on a real cluster it is a pod that its chart labels so. */
function operatorPod(): KubernetesObject {
  const labels = { "app.kubernetes.io/name": "kuberay-operator" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "kuberay-operator", namespace, labels },
    spec: { containers: [{ name: "operator", image: "kuberay/operator" }] },
  };
}
