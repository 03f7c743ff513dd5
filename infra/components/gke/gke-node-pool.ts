import type * as gcp from "@pulumi/gcp";
import type * as pulumi from "@pulumi/pulumi";
import { nodeSelector, type StackConfig } from "../../config.ts";
import { gpuTaint, type NodePool } from "../../node-pools.ts";

/** What all nodes of a cluster have in common: no more rights than a node needs, and a boot that is checked. */
export function nodeDefaults(serviceAccount: pulumi.Input<string>) {
  return {
    serviceAccount,
    // What a node may do is decided by the roles of its account, not by scopes.
    oauthScopes: ["https://www.googleapis.com/auth/cloud-platform"],
    workloadMetadataConfig: { mode: "GKE_METADATA" },
    shieldedInstanceConfig: { enableSecureBoot: true, enableIntegrityMonitoring: true },
    metadata: { "disable-legacy-endpoints": "true" },
  };
}

/** The settings of one node pool. */
export function nodePoolArgs(
  config: StackConfig,
  pool: NodePool,
  cluster: gcp.container.Cluster,
  serviceAccount: pulumi.Input<string>,
): gcp.container.NodePoolArgs {
  const isGpu = pool.role === "workerGpu";
  return {
    cluster: cluster.id,
    namePrefix: `${pool.name.slice(0, 12)}-`,
    initialNodeCount: undefined,
    autoscaling: {
      totalMinNodeCount: pool.min,
      totalMaxNodeCount: pool.max,
      // Spot machines and GPUs are taken from whichever zone has them.
      locationPolicy: pool.spot || isGpu ? "ANY" : "BALANCED",
    },
    management: { autoRepair: true, autoUpgrade: true },
    upgradeSettings: { strategy: "SURGE", maxSurge: 1, maxUnavailable: 0 },
    nodeConfig: {
      ...nodeDefaults(serviceAccount),
      machineType: pool.machineType,
      diskSizeGb: pool.diskGb,
      diskType: "pd-balanced",
      imageType: "COS_CONTAINERD",
      spot: pool.spot,
      labels: nodeSelector(config, pool.role),
      // Ray images are large: pods start while their image is still being read.
      gcfsConfig: { enabled: true },
      ...(isGpu && {
        guestAccelerators: [
          {
            type: pool.gpuType ?? "",
            count: pool.gpus,
            gpuDriverInstallationConfig: { gpuDriverVersion: "DEFAULT" },
          },
        ],
        // The drivers' kernel modules that GKE installs are signed, so secure boot stays on.
        taints: [{ ...gpuTaint, effect: "NO_SCHEDULE" }],
      }),
    },
  };
}
