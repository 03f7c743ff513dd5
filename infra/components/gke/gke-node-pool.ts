import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { GkeConfig } from "../../config.ts";
import { cloudTaint, type NodePool } from "../../node-pools.ts";
import { zonesOffering } from "./gke-zones.ts";

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

export interface NodePoolContext {
  readonly config: GkeConfig;
  readonly project: pulumi.Output<string>;
  readonly cluster: gcp.container.Cluster;
  readonly nodeEmail: pulumi.Output<string>;
  /** What disks are encrypted with; Google's own when undefined. */
  readonly key: pulumi.Output<string> | undefined;
  readonly parent: pulumi.Resource;
}

export function createNodePool(name: string, pool: NodePool, context: NodePoolContext): gcp.container.NodePool {
  const { config, project, cluster, nodeEmail, key, parent } = context;
  const isGpu = pool.gpus > 0;
  const [machineType] = pool.machineTypes;
  const zones =
    pool.zones === undefined
      ? zonesOffering(machineType, { region: config.region, project }, parent)
      : pulumi.output([...pool.zones]);
  return new gcp.container.NodePool(
    name,
    {
      cluster: cluster.id,
      namePrefix: `${pool.name.slice(0, 12)}-`,
      nodeLocations: zones,
      // A pool is born with as many in each zone. The least total makes none: it only keeps those that are there.
      ...(pool.min > 0 && { initialNodeCount: zones.apply(({ length }) => Math.ceil(pool.min / length)) }),
      autoscaling: {
        totalMinNodeCount: pool.min,
        totalMaxNodeCount: pool.max,
        // Spot machines and GPUs are taken from whichever zone has them.
        locationPolicy: pool.spot || isGpu ? "ANY" : "BALANCED",
      },
      management: { autoRepair: true, autoUpgrade: true },
      upgradeSettings: { strategy: "SURGE", maxSurge: 1, maxUnavailable: 0 },
      nodeConfig: {
        ...nodeDefaults(nodeEmail),
        machineType,
        diskSizeGb: pool.diskGb,
        diskType: pool.diskType,
        ...(key !== undefined && { bootDiskKmsKey: key }),
        // The provider labels the pool; machines and their disks have these.
        ...(Object.keys(config.tags).length > 0 && { resourceLabels: config.tags }),
        imageType: "COS_CONTAINERD",
        spot: pool.spot,
        labels: pool.labels,
        ...(pool.taints.length > 0 && { taints: pool.taints.map(cloudTaint) }),
        // Ray images are large: pods start while their image is still being read.
        gcfsConfig: { enabled: true },
        ...(isGpu && {
          guestAccelerators: [
            {
              type: pool.gpuType ?? "",
              count: pool.gpus,
              // The drivers' kernel modules that GKE installs are signed, so secure boot stays on.
              gpuDriverInstallationConfig: { gpuDriverVersion: "DEFAULT" },
            },
          ],
        }),
      },
    },
    { parent, ignoreChanges: ["initialNodeCount", "nodeCount"] },
  );
}
