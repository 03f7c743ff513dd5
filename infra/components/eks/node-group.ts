import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { EksConfig } from "../../config.ts";
import { cloudTaint, type NodePool } from "../../node-pools.ts";

export interface NodeGroupArgs {
  readonly config: EksConfig;
  readonly pool: NodePool;
  readonly cluster: { readonly name: pulumi.Output<string>; readonly version: pulumi.Input<string> };
  readonly role: aws.iam.Role;
  /**
   * The resources that nodes need to join and to pull images: the rights of the role and the routes. They must outlive
   * the nodes.
   */
  readonly needs: readonly pulumi.Resource[];
  readonly subnetIds: readonly pulumi.Input<string>[];
  /** The minimum and the maximum number of nodes of this group, which may be one of several groups of its pool. */
  readonly min: number;
  readonly max: number;
}

/** The limits of a group in the settings of the autoscaler. */
export interface AutoscalingGroup {
  readonly name: pulumi.Output<string>;
  readonly minSize: number;
  readonly maxSize: number;
}

/** The maximum number of nodes that EKS allows in a group. */
const mostNodes = 450;

const amiArchitecture = { amd64: "x86_64", arm64: "ARM_64" } as const;

/** With this label the autoscaler waits for the GPUs of a node instead of creating another node. */
const acceleratorLabel = "k8s.amazonaws.com/accelerator";

/**
 * A managed node group whose nodes have their labels from the start. The autoscaler also knows them while the group is
 * empty.
 */
export class NodeGroup extends pulumi.ComponentResource {
  readonly group: aws.eks.NodeGroup;
  readonly limits: AutoscalingGroup;
  /** Reports whether the group is for controllers and the catalog. */
  readonly isCore: boolean;

  constructor(name: string, args: NodeGroupArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:NodeGroup", name, {}, options);
    const { config, pool, cluster, role, min, max } = args;
    const isGpu = pool.gpus > 0;
    this.isCore = pool.role === "core";
    const template = createTemplate(name, config, pool, this);
    this.group = new aws.eks.NodeGroup(
      name,
      {
        clusterName: cluster.name,
        version: cluster.version,
        nodeGroupNamePrefix: `${pool.name}-`,
        nodeRoleArn: role.arn,
        subnetIds: [...args.subnetIds],
        amiType: `AL2023_${amiArchitecture[pool.architecture]}_${isGpu ? "NVIDIA" : "STANDARD"}`,
        instanceTypes: [...pool.machineTypes],
        capacityType: pool.spot ? "SPOT" : "ON_DEMAND",
        launchTemplate: { id: template.id, version: template.latestVersion.apply(String) },
        labels: { ...pool.labels, ...(isGpu && { [acceleratorLabel]: pool.machineTypes[0].split(".")[0] ?? "" }) },
        ...(pool.taints.length > 0 && { taints: pool.taints.map(cloudTaint) }),
        // EKS sets the number of nodes together with its limits. Only the autoscaler controls the number, so the
        // effective limits are part of the autoscaler's settings, and these never change.
        scalingConfig: { minSize: 0, maxSize: Math.max(mostNodes, max), desiredSize: min },
        // Without a release, a group keeps its first one until the next minor version of Kubernetes.
        ...(config.nodeRelease !== undefined && {
          releaseVersion:
            config.nodeRelease === "newest" ? newestRelease(pool, cluster.version, this) : config.nodeRelease,
        }),
        updateConfig: {
          // Nodes are updated a third at a time. One by one, a large group would exceed the time limit of an update.
          maxUnavailablePercentage: 33,
          // A group of GPUs ends its old nodes first, because AWS rarely has a second machine of the kind.
          updateStrategy: isGpu ? "MINIMAL" : "DEFAULT",
        },
        nodeRepairConfig: { enabled: true },
      },
      {
        parent: this,
        ignoreChanges: [
          "scalingConfig",
          // A machine type that a further zone offers now must not replace the nodes.
          ...(pool.zones === undefined ? ["subnetIds"] : []),
        ],
        dependsOn: [...args.needs],
        customTimeouts: { update: "3h" },
      },
    );
    const autoscalingGroup = this.group.resources.apply(([resources]) => resources?.autoscalingGroups?.[0]?.name ?? "");
    this.limits = { name: autoscalingGroup, minSize: min, maxSize: max };
    this.registerOutputs();
  }
}

/** Returns the newest release of the image. */
function newestRelease(
  { architecture, gpus }: NodePool,
  kubernetesVersion: pulumi.Input<string>,
  parent: pulumi.Resource,
): pulumi.Output<string> {
  const image = `amazon-linux-2023/${architecture === "arm64" ? "arm64" : "x86_64"}/${gpus > 0 ? "nvidia" : "standard"}`;
  const name = pulumi.interpolate`/aws/service/eks/optimized-ami/${kubernetesVersion}/${image}/recommended/release_version`;
  return aws.ssm.getParameterOutput({ name }, { parent }).value;
}

function createTemplate(name: string, config: EksConfig, pool: NodePool, parent: pulumi.Resource) {
  return new aws.ec2.LaunchTemplate(
    name,
    {
      // Pods have separate identities and must not reach that of the machine: a single hop ends at the node.
      metadataOptions: { httpTokens: "required", httpPutResponseHopLimit: 1, httpEndpoint: "enabled" },
      blockDeviceMappings: [
        {
          deviceName: "/dev/xvda",
          ebs: {
            volumeSize: pool.diskGb,
            volumeType: pool.diskType,
            encrypted: "true",
            ...(config.encryptionKey !== undefined && { kmsKeyId: config.encryptionKey }),
            deleteOnTermination: "true",
          },
        },
      ],
      // The provider tags only the template, and its instances have only the tags within the template.
      tagSpecifications: ["instance", "volume", "network-interface"].map((resourceType) => ({
        resourceType,
        tags: { ...config.tags, Name: `${config.clusterName}-${pool.name}` },
      })),
      updateDefaultVersion: true,
    },
    { parent },
  );
}
