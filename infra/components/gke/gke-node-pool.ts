import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { GkeConfig } from "../../config.ts";
import { cloudTaint, firstNodes, type NodePool } from "../../node-pools.ts";
import { zonesOffering } from "./gke-zones.ts";

/** Returns the common settings of all nodes of a cluster: least-privilege rights and a verified boot. */
export function nodeDefaults(serviceAccount: pulumi.Input<string>) {
  return {
    serviceAccount,
    // The roles of the account, and not the scopes, determine the rights of a node.
    oauthScopes: ["https://www.googleapis.com/auth/cloud-platform"],
    workloadMetadataConfig: { mode: "GKE_METADATA" },
    shieldedInstanceConfig: { enableSecureBoot: true, enableIntegrityMonitoring: true },
    metadata: { "disable-legacy-endpoints": "true" },
  };
}

export interface NodePoolDeps {
  readonly config: GkeConfig;
  readonly project: pulumi.Output<string>;
  readonly cluster: gcp.container.Cluster;
  readonly nodeEmail: pulumi.Output<string>;
  /** The key of disks; Google's own key if undefined. */
  readonly key: pulumi.Output<string> | undefined;
  readonly parent: pulumi.Resource;
}

/**
 * Returns as many zones as a pool may begin in. GKE creates equally many nodes in each zone, and they must not be more
 * than the maximum of the pool.
 */
function zonesWithin(pool: NodePool, zones: readonly string[]): string[] {
  const count = zones.findLastIndex((_, index) => firstNodes(pool, index + 1) <= pool.max) + 1;
  return zones.slice(0, count);
}

export function createNodePool(name: string, pool: NodePool, deps: NodePoolDeps): gcp.container.NodePool {
  const { config, project, cluster, nodeEmail, key, parent } = deps;
  const isGpu = pool.gpus > 0;
  const [machineType] = pool.machineTypes;
  const zones =
    pool.zones === undefined
      ? zonesOffering(machineType, { region: config.region, project }, parent).apply((all) => zonesWithin(pool, all))
      : pulumi.output([...pool.zones]);
  return new gcp.container.NodePool(
    name,
    {
      cluster: cluster.id,
      namePrefix: `${pool.name.slice(0, 12)}-`,
      nodeLocations: zones,
      // The initial number applies to each zone. The total minimum creates no nodes; it only keeps existing ones.
      ...(pool.min > 0 && { initialNodeCount: zones.apply(({ length }) => Math.ceil(pool.min / length)) }),
      autoscaling: {
        totalMinNodeCount: pool.min,
        totalMaxNodeCount: pool.max,
        // Spot machines and GPUs can be in whichever zone has capacity.
        locationPolicy: pool.spot || isGpu ? "ANY" : "BALANCED",
      },
      management: { autoRepair: true, autoUpgrade: true },
      // Google rarely has another machine with GPUs, so such a pool ends a node before it starts the next one.
      upgradeSettings: {
        strategy: "SURGE",
        ...(isGpu ? { maxSurge: 0, maxUnavailable: 1 } : { maxSurge: 1, maxUnavailable: 0 }),
      },
      nodeConfig: {
        ...nodeDefaults(nodeEmail),
        machineType,
        diskSizeGb: pool.diskGb,
        diskType: pool.diskType,
        ...(key !== undefined && { bootDiskKmsKey: key }),
        // The provider labels the pool; these labels apply to machines and their disks.
        ...(Object.keys(config.tags).length > 0 && { resourceLabels: config.tags }),
        imageType: "COS_CONTAINERD",
        spot: pool.spot,
        labels: pool.labels,
        ...(pool.taints.length > 0 && { taints: pool.taints.map(cloudTaint) }),
        // Image streaming lets pods start while their image is still being read, because Ray images are large.
        gcfsConfig: { enabled: true },
        ...(isGpu && {
          guestAccelerators: [
            {
              type: pool.gpuType ?? "",
              count: pool.gpus,
              // The kernel modules of the drivers that GKE installs are signed, so secure boot remains enabled.
              gpuDriverInstallationConfig: { gpuDriverVersion: "DEFAULT" },
            },
          ],
        }),
      },
    },
    {
      parent,
      ignoreChanges: [
        "initialNodeCount",
        "nodeCount",
        // Another maximum, or a machine that a further zone offers, must not delete the nodes of a zone: their heads and
        // the volume of the catalog are there.
        ...(pool.zones === undefined ? ["nodeLocations"] : []),
      ],
    },
  );
}
