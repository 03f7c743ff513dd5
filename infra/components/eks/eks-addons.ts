import * as aws from "@pulumi/aws";
import * as kubernetes from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";
import type { CloudServices } from "../../cluster.ts";
import type { EksConfig } from "../../config.ts";
import type { ClusterProvider } from "../cluster-provider.ts";
import type { EksAccount } from "./eks-account.ts";
import { useKeyForDisks } from "./eks-encryption.ts";
import { createRole } from "./iam-role.ts";
import type { NodeGroup } from "./node-group.ts";
import { policyOf, trustServiceAccount } from "./policies.ts";

/** The cluster and the services that add-ons need. */
export interface AddonDeps {
  readonly config: EksConfig;
  readonly account: EksAccount;
  readonly services: CloudServices;
  readonly kubernetes: ClusterProvider;
  readonly cluster: {
    readonly name: pulumi.Output<string>;
    readonly arn: pulumi.Output<string>;
    readonly version: pulumi.Output<string>;
  };
  readonly oidcProvider: pulumi.Output<{ readonly arn: string; readonly url: string }>;
  readonly parent: pulumi.Resource;
}

/** The name of the default storage class of the cluster. */
export const storageClassName = "gp3-encrypted";

/** Creates DNS in the version that belongs to that of Kubernetes. */
export function createDns(name: string, deps: AddonDeps, nodes: readonly NodeGroup[]): void {
  createAddon(name, "coredns", {}, deps, nodes);
}

/** Creates the agent that reports broken nodes, such as those with a broken GPU, so that EKS repairs them. */
export function createNodeMonitoring(name: string, deps: AddonDeps, nodes: readonly NodeGroup[]): void {
  createAddon(name, "eks-node-monitoring-agent", {}, deps, nodes);
}

/**
 * Creates the driver of volumes with its role, and an encrypted default class that waits for the zone of the pod. The
 * driver runs until its nodes are deleted, and its rights outlive the nodes, because the volumes of the last pods are
 * deleted in between.
 */
export function createVolumes(name: string, deps: AddonDeps) {
  const { clusterName, encryptionKey, tags } = deps.config;
  const { role, policies } = createRole(
    name,
    {
      partition: deps.account.partition,
      clusterName,
      description: "creates and attaches volumes",
      trust: deps.oidcProvider.apply((provider) =>
        trustServiceAccount(provider, "kube-system", "ebs-csi-controller-sa"),
      ),
      // The second version of the policy is limited to the volumes that the driver created.
      managedPolicies: ["AmazonEBSCSIDriverPolicyV2"],
      ...(encryptionKey !== undefined && { policy: policyOf(...useKeyForDisks(encryptionKey)) }),
    },
    deps.parent,
  );
  return {
    /** The resources that must outlive the nodes. */
    rights: policies,
    createDriver: (nodes: readonly NodeGroup[]) =>
      createAddon(
        name,
        "aws-ebs-csi-driver",
        { serviceAccountRoleArn: role.arn, preserve: true, configurationValues: taggingVolumes(tags) },
        deps,
        nodes,
      ),
    createClass: (driver: aws.eks.Addon) =>
      new kubernetes.storage.v1.StorageClass(
        `${name}-gp3`,
        {
          metadata: {
            name: storageClassName,
            annotations: { "storageclass.kubernetes.io/is-default-class": "true" },
          },
          provisioner: "ebs.csi.aws.com",
          parameters: {
            ...{ type: "gp3", encrypted: "true" },
            ...(encryptionKey !== undefined && { kmsKeyId: encryptionKey }),
          },
          volumeBindingMode: "WaitForFirstConsumer",
          allowVolumeExpansion: true,
          reclaimPolicy: "Delete",
        },
        deps.kubernetes.owned("cluster", {
          parent: deps.parent,
          provider: deps.kubernetes,
          dependsOn: [driver],
        }),
      ),
  };
}

/**
 * Returns the setting that tags new volumes. The driver creates them without the tags of the stack by default, and the
 * provider keeps the tags of the last `up` without the setting.
 */
function taggingVolumes(tags: Readonly<Record<string, string>>): string {
  return JSON.stringify({ controller: { extraVolumeTags: tags } });
}

/** Returns the default version of an add-on for a version of Kubernetes. */
export function addonVersion(
  addonName: string,
  kubernetesVersion: pulumi.Input<string>,
  parent: pulumi.Resource,
): pulumi.Output<string> {
  return aws.eks.getAddonVersionOutput({ addonName, kubernetesVersion }, { parent }).version;
}

/**
 * Creates an add-on with an explicit version. Without one, an add-on would keep its first version when Kubernetes is
 * upgraded.
 */
export function createAddon(
  name: string,
  addonName: string,
  more: Pick<aws.eks.AddonArgs, "serviceAccountRoleArn" | "preserve" | "configurationValues">,
  { cluster, parent }: AddonDeps,
  needs: readonly pulumi.Resource[],
): aws.eks.Addon {
  return new aws.eks.Addon(
    name,
    {
      clusterName: cluster.name,
      addonName,
      addonVersion: addonVersion(addonName, cluster.version, parent),
      resolveConflictsOnCreate: "OVERWRITE",
      resolveConflictsOnUpdate: "OVERWRITE",
      ...more,
    },
    { parent, dependsOn: [...needs] },
  );
}
