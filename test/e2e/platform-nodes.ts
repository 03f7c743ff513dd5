import { parseStackConfig } from "../../infra/config.ts";
import { roleLabels } from "../../infra/node-pools.ts";
import { settingsOf, testDate } from "../support/stack.ts";
import type { KubernetesApi } from "./kubernetes/api.ts";
import { addNodes, addStorageClass, addVolumes } from "./kubernetes/nodes.ts";

/** Names of the nodes that {@link addPlatformNodes} makes, by what may run on them. */
export const platformNodes = {
  core: "core-1",
  head: "head-1",
  workerCpu: ["cpu-1", "cpu-2"],
  workerGpu: "gpu-1",
  unlabelled: "plain-1",
} as const;

/**
 * Nodes as requirements.md 2.7 wants them, one without any label, and volumes. All variants have the same labels by
 * default, and each a storage class of its own: that of `existing` is the cluster's default.
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
  // On a real cluster Google has made it; that of EKS is the stack's.
  await addStorageClass(api, "premium-rwo", false);
  await addVolumes(api, ["standard", "premium-rwo", "gp3-encrypted"]);
}
