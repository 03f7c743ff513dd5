import { parseStackConfig } from "../../infra/config.ts";
import { roleLabels } from "../../infra/node-pools.ts";
import { settingsOf, testDate } from "../support/stack.ts";
import type { KubernetesApi } from "./kubernetes/api.ts";
import { addNodes, addStorageClass, addVolumes } from "./kubernetes/nodes.ts";

/** The names of the nodes that {@link addPlatformNodes} creates, by their role. */
export const platformNodes = {
  core: "core-1",
  head: "head-1",
  workerCpu: ["cpu-1", "cpu-2"],
  workerGpu: "gpu-1",
  unlabelled: "plain-1",
} as const;

/**
 * Creates nodes for all roles, one without labels, and volumes. All variants share the same default labels, but each
 * has a separate storage class; that of `existing` is the default of the cluster.
 */
export async function addPlatformNodes(api: KubernetesApi): Promise<void> {
  const config = parseStackConfig(settingsOf("existing"), testDate);
  const [cpu1, cpu2] = platformNodes.workerCpu;
  await addNodes(api, [
    { name: platformNodes.core, labels: roleLabels(config, "core") },
    { name: platformNodes.head, labels: roleLabels(config, "head") },
    { name: cpu1, labels: roleLabels(config, "workerCpu") },
    { name: cpu2, labels: roleLabels(config, "workerCpu"), spot: true },
    { name: platformNodes.workerGpu, labels: roleLabels(config, "workerGpu"), gpus: 2, spot: true },
    { name: platformNodes.unlabelled },
  ]);
  await addStorageClass(api, "standard", true);
  // On a real cluster, Google creates this class. The stack itself creates the class of EKS, and on GKE the class
  // `tiltyard` for disks with labels.
  await addStorageClass(api, "premium-rwo", false);
  await addVolumes(api, ["standard", "premium-rwo", "tiltyard", "gp3-encrypted"]);
}
