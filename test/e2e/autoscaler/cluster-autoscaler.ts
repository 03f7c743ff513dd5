import { existsSync } from "node:fs";
import { unusedPort } from "../../../client/unused-port.ts";
import type { TestCluster } from "../cluster.ts";
import { Daemon } from "../control-plane/daemon.ts";
import type { KubernetesObject } from "../kubernetes/api.ts";
import { addNodes, nodeOf } from "../kubernetes/nodes.ts";
import { until } from "../until.ts";
import type { AutoscalerSettings, NodeGroup } from "./node-groups.ts";

/** The cluster autoscaler with its provider for KWOK. README.md describes its build, because no registry has its module. */
export const autoscalerProgram = process.env.TILTYARD_E2E_CLUSTER_AUTOSCALER;

const namespace = "kube-system";
const manager = "tiltyard-e2e";
const templates = "kwok-provider-templates";
/** The annotation of the provider for the group of a node and the sizes of the group. */
const annotation = "cluster-autoscaler.kwok.nodegroup";

const config = {
  apiVersion: "v1alpha1",
  readNodesFrom: "configmap",
  configmap: { name: templates },
  nodegroups: { fromNodeAnnotationKey: `${annotation}/name` },
  nodes: {
    skipTaint: true,
    gpuConfig: { gpuLabelKey: "k8s.amazonaws.com/accelerator", availableGPUTypes: { "nvidia-l4": {} } },
  },
};

/** The flags with which nodes are checked each second and deleted after the same time without use. */
const flags = [
  ...["--cloud-provider=kwok", "--leader-elect=false", "--scan-interval=1s", "--v=4"],
  ...["--scale-down-unneeded-time=1s", "--scale-down-delay-after-add=1s", "--node-delete-delay-after-taint=0s"],
];

/**
 * Runs the cluster autoscaler over node groups with the minimum number of nodes.
 *
 * @param settings The settings of the stack.
 * @returns After its first pass over the cluster.
 */
export async function startClusterAutoscaler(
  cluster: TestCluster,
  groups: readonly NodeGroup[],
  settings: AutoscalerSettings,
): Promise<Daemon> {
  const { api, kubeconfigPath } = cluster;
  if (autoscalerProgram === undefined || !existsSync(autoscalerProgram))
    throw new Error("TILTYARD_E2E_CLUSTER_AUTOSCALER has to be the path of the built cluster autoscaler");
  for (const group of groups) await addNodes(api, fewestOf(group));
  const list = { apiVersion: "v1", kind: "List", items: groups.map(templateOf) };
  await configure(cluster, "kwok-provider-config", { config: JSON.stringify(config) });
  await configure(cluster, templates, { templates: JSON.stringify(list) });
  await configure(cluster, "cluster-autoscaler-priority-expander", { priorities: JSON.stringify(settings.priorities) });
  const address = `--address=127.0.0.1:${await unusedPort()}`;
  const args = [...flags, ...settings.flags, address, `--kubeconfig=${kubeconfigPath}`, `--namespace=${namespace}`];
  const environment = { KUBECONFIG: kubeconfigPath, KWOK_PROVIDER_MODE: "local", POD_NAMESPACE: namespace };
  const daemon = new Daemon(autoscalerProgram, args, cluster.logPath("cluster-autoscaler"), environment);
  await until(() => api.find(mapNamed("cluster-autoscaler-status")));
  return daemon;
}

/** Stops the autoscaler and deletes its nodes. */
export async function stopClusterAutoscaler(cluster: TestCluster, daemon: Daemon): Promise<void> {
  const { api } = cluster;
  await daemon.kill();
  await api.delete(mapNamed("cluster-autoscaler-status"));
  for (const node of await api.list("v1", "Node")) await api.delete(node);
}

/** Returns the number of nodes of each group by its resource. Groups without nodes are omitted. */
export async function nodeCounts({ api }: TestCluster, groups: readonly NodeGroup[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { metadata } of await api.list("v1", "Node")) {
    const name = metadata.annotations?.[`${annotation}/name`];
    const { resource = "none" } = groups.find((group) => group.name === name) ?? {};
    counts[resource] = (counts[resource] ?? 0) + 1;
  }
  return counts;
}

/** Returns the nodes that the cloud creates with the group, before any autoscaler. */
function fewestOf({ name, min, node }: NodeGroup) {
  return Array.from({ length: min }, (_, index) => {
    const own = `${name}-${index}`;
    return { ...node, name: own, providerId: `kwok:${own}`, annotations: { [`${annotation}/name`]: name } };
  });
}

function templateOf({ name, min, max, node }: NodeGroup): KubernetesObject {
  const sizes = { "min-count": min, "max-count": max, "desired-count": min };
  const annotations = Object.entries({ name, ...sizes }).map(([key, value]) => [`${annotation}/${key}`, String(value)]);
  return nodeOf({ ...node, name, annotations: Object.fromEntries(annotations) });
}

function mapNamed(name: string) {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace } };
}

async function configure({ api }: TestCluster, name: string, data: Readonly<Record<string, string>>): Promise<void> {
  await api.apply({ ...mapNamed(name), data } as KubernetesObject, { manager, force: true });
}
