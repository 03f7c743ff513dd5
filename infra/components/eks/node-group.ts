import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { gpuResource } from "@tiltyard/protocol";
import { nodeSelector, type StackConfig } from "../../config.ts";
import { gpuTaint, type NodePool } from "../../node-pools.ts";

export interface NodeGroupArgs {
  readonly config: StackConfig;
  readonly pool: NodePool;
  readonly cluster: { readonly name: pulumi.Output<string>; readonly version: pulumi.Input<string> };
  readonly role: aws.iam.Role;
  /** What nodes need to join and to pull images: the rights of the role, the way out. It must outlive them. */
  readonly needs: readonly pulumi.Resource[];
  readonly subnetIds: readonly pulumi.Input<string>[];
}

/** A managed node group whose nodes have their label from the first moment on, also when there is none yet. */
export class NodeGroup extends pulumi.ComponentResource {
  readonly group: aws.eks.NodeGroup;

  constructor(name: string, args: NodeGroupArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:NodeGroup", name, {}, options);
    const { config, pool, cluster, role } = args;
    const child = { parent: this };
    const isGpu = pool.role === "workerGpu";
    const labels = nodeSelector(config, pool.role);
    const template = new aws.ec2.LaunchTemplate(
      name,
      {
        // Pods have identities of their own and need not reach the machine's: one hop ends at the node.
        metadataOptions: { httpTokens: "required", httpPutResponseHopLimit: 1, httpEndpoint: "enabled" },
        blockDeviceMappings: [
          {
            deviceName: "/dev/xvda",
            ebs: { volumeSize: pool.diskGb, volumeType: "gp3", encrypted: "true", deleteOnTermination: "true" },
          },
        ],
        tagSpecifications: [{ resourceType: "instance", tags: { Name: `${config.clusterName}-${pool.name}` } }],
        updateDefaultVersion: true,
      },
      child,
    );
    this.group = new aws.eks.NodeGroup(
      name,
      {
        clusterName: cluster.name,
        version: cluster.version,
        nodeGroupNamePrefix: `${pool.name}-`,
        nodeRoleArn: role.arn,
        subnetIds: [...args.subnetIds],
        amiType: isGpu ? "AL2023_x86_64_NVIDIA" : "AL2023_x86_64_STANDARD",
        instanceTypes: [pool.machineType],
        capacityType: pool.spot ? "SPOT" : "ON_DEMAND",
        launchTemplate: { id: template.id, version: template.latestVersion.apply(String) },
        labels,
        ...(isGpu && { taints: [{ ...gpuTaint, effect: "NO_SCHEDULE" }] }),
        scalingConfig: { minSize: pool.min, maxSize: pool.max, desiredSize: pool.min },
        updateConfig: { maxUnavailable: 1 },
        nodeRepairConfig: { enabled: true },
      },
      {
        ...child,
        // The autoscaler moves it.
        ignoreChanges: ["scalingConfig.desiredSize"],
        dependsOn: [...args.needs],
      },
    );
    this.#tagForAutoscaler(name, labels, isGpu ? gpuTaint : undefined, pool);
    this.registerOutputs();
  }

  /**
   * EKS labels nodes, but not the group that makes them. The autoscaler reads from these tags
   * what a node of an empty group would have.
   */
  #tagForAutoscaler(
    name: string,
    labels: Readonly<Record<string, string>>,
    taint: typeof gpuTaint | undefined,
    pool: NodePool,
  ): void {
    const template = "k8s.io/cluster-autoscaler/node-template";
    const tags = {
      ...Object.fromEntries(Object.entries(labels).map(([key, value]) => [`${template}/label/${key}`, value])),
      ...(taint && { [`${template}/taint/${taint.key}`]: `${taint.value}:NoSchedule` }),
      ...(pool.gpus > 0 && { [`${template}/resources/${gpuResource}`]: String(pool.gpus) }),
    };
    const autoscalingGroupName = this.group.resources.apply(
      ([resources]) => resources?.autoscalingGroups?.[0]?.name ?? "",
    );
    Object.entries(tags).forEach(([key, value], index) => {
      new aws.autoscaling.Tag(
        `${name}-${index}`,
        { autoscalingGroupName, tag: { key, value, propagateAtLaunch: false } },
        { parent: this },
      );
    });
  }
}
