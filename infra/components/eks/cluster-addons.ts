import * as aws from "@pulumi/aws";
import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { identityAnnotations } from "@tiltyard/protocol";
import { nodeSelector, type StackConfig } from "../../config.ts";
import { gpuTaint } from "../../node-pools.ts";
import { charts, versions } from "../../versions.ts";
import { createRole } from "./iam-role.ts";
import { autoscalerStatements, policyOf, trustServiceAccount } from "./policies.ts";

export interface ClusterAddonsArgs {
  readonly config: StackConfig;
  readonly kubernetes: kubernetes.Provider;
  readonly cluster: { readonly name: pulumi.Output<string>; readonly arn: pulumi.Output<string> };
  readonly oidcProvider: pulumi.Output<{ readonly arn: string; readonly url: string }>;
  /** They have to be there for pods of the add-ons to run. */
  readonly nodes: readonly pulumi.Resource[];
}

/** What EKS does not bring by itself: DNS that is kept up to date, volumes, nodes when they are wanted, GPUs. */
export class ClusterAddons extends pulumi.ComponentResource {
  readonly storageClass: pulumi.Output<string>;

  constructor(name: string, args: ClusterAddonsArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:ClusterAddons", name, {}, options);
    createDns(this, name, args);
    this.storageClass = createVolumes(this, name, args);
    createAutoscaler(this, name, args);
    if (args.config.nodePools.some((pool) => pool.gpus > 0)) createDevicePlugin(this, name, args);
    this.registerOutputs();
  }
}

function createDns(parent: pulumi.Resource, name: string, { cluster, nodes }: ClusterAddonsArgs): void {
  new aws.eks.Addon(
    `${name}-coredns`,
    { clusterName: cluster.name, addonName: "coredns", resolveConflictsOnCreate: "OVERWRITE" },
    { parent, dependsOn: [...nodes] },
  );
}

/** The driver with its own role, and an encrypted default class that waits to see in which zone the pod lands. */
function createVolumes(parent: pulumi.Resource, name: string, args: ClusterAddonsArgs): pulumi.Output<string> {
  const { role, policies } = createRole(
    `${name}-ebs`,
    {
      description: "Makes and attaches volumes",
      trust: args.oidcProvider.apply((provider) =>
        trustServiceAccount(provider, "kube-system", "ebs-csi-controller-sa"),
      ),
      managedPolicies: ["service-role/AmazonEBSCSIDriverPolicy"],
    },
    parent,
  );
  const driver = new aws.eks.Addon(
    `${name}-ebs`,
    {
      clusterName: args.cluster.name,
      addonName: "aws-ebs-csi-driver",
      serviceAccountRoleArn: role.arn,
      resolveConflictsOnCreate: "OVERWRITE",
    },
    { parent, dependsOn: [...policies, ...args.nodes] },
  );
  const storageClass = new kubernetes.storage.v1.StorageClass(
    `${name}-gp3`,
    {
      metadata: {
        name: "gp3-encrypted",
        annotations: { "storageclass.kubernetes.io/is-default-class": "true" },
      },
      provisioner: "ebs.csi.aws.com",
      parameters: { type: "gp3", encrypted: "true" },
      volumeBindingMode: "WaitForFirstConsumer",
      allowVolumeExpansion: true,
      reclaimPolicy: "Delete",
    },
    { parent, provider: args.kubernetes, dependsOn: [driver] },
  );
  return storageClass.metadata.name;
}

const autoscalerAccount = "cluster-autoscaler";

function createAutoscaler(parent: pulumi.Resource, name: string, args: ClusterAddonsArgs): void {
  const { config, cluster, nodes } = args;
  const accountId = aws.getCallerIdentityOutput({}, { parent }).accountId;
  const { role, policies } = createRole(
    `${name}-autoscaler`,
    {
      description: "Makes node groups larger and smaller",
      trust: args.oidcProvider.apply((provider) => trustServiceAccount(provider, "kube-system", autoscalerAccount)),
      policy: pulumi.all([cluster.arn, accountId]).apply(([clusterArn, account]) =>
        policyOf(
          ...autoscalerStatements({
            clusterName: config.clusterName,
            clusterArn,
            region: config.region,
            accountId: account,
          }),
        ),
      ),
    },
    parent,
  );
  new kubernetes.helm.v3.Release(
    `${name}-autoscaler`,
    {
      ...release(charts.clusterAutoscaler, versions.clusterAutoscalerChart),
      namespace: "kube-system",
      values: {
        cloudProvider: "aws",
        awsRegion: config.region,
        autoDiscovery: { clusterName: cluster.name },
        fullnameOverride: autoscalerAccount,
        rbac: {
          serviceAccount: { name: autoscalerAccount, annotations: { [identityAnnotations.EKS_AUTH]: role.arn } },
        },
        nodeSelector: nodeSelector(config, "core"),
        priorityClassName: "system-cluster-critical",
        resources: { requests: { cpu: "100m", memory: "300Mi" }, limits: { memory: "600Mi" } },
        podDisruptionBudget: { maxUnavailable: 1 },
        extraArgs: {
          "balance-similar-node-groups": true,
          "skip-nodes-with-system-pods": false,
          expander: "least-waste",
        },
      },
    },
    { parent, provider: args.kubernetes, dependsOn: [...policies, ...nodes] },
  );
}

/** Makes GPUs something that pods can ask for; requirements.md 5.1, variant B, 7. */
function createDevicePlugin(parent: pulumi.Resource, name: string, args: ClusterAddonsArgs): void {
  new kubernetes.helm.v3.Release(
    `${name}-nvidia`,
    {
      ...release(charts.nvidiaDevicePlugin, versions.nvidiaDevicePluginChart),
      namespace: "kube-system",
      values: {
        tolerations: [{ key: gpuTaint.key, operator: "Exists", effect: "NoSchedule" }],
        // In the place of the chart's, which wants labels of another operator. Pulumi leaves out what is null.
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: nodesWith(nodeSelector(args.config, "workerGpu")) }],
            },
          },
        },
      },
    },
    { parent, provider: args.kubernetes, dependsOn: [...args.nodes] },
  );
}

function nodesWith(labels: Readonly<Record<string, string>>) {
  return Object.entries(labels).map(([key, value]) => ({ key, operator: "In", values: [value] }));
}

function release({ chart, repository }: { readonly chart: string; readonly repository: string }, version: string) {
  return { chart, version, repositoryOpts: { repo: repository }, atomic: true, timeout: 600 };
}
