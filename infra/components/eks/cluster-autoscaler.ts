import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { identityAnnotations } from "@tiltyard/platform";
import { placedOn } from "../../node-pools.ts";
import { merged } from "../../settings/chart-values.ts";
import { autoscalerVersion, charts, versions } from "../../versions.ts";
import type { AddonDeps } from "./eks-addons.ts";
import { release } from "./helm-release.ts";
import { createRole } from "./iam-role.ts";
import type { NodeGroup } from "./node-group.ts";
import { autoscalerStatements, policyOf, trustServiceAccount } from "./policies.ts";

const serviceAccount = "cluster-autoscaler";

/**
 * Creates the autoscaler of the node groups. The groups and their limits are configured explicitly instead of
 * discovered by tags, so that these limits apply. The limits of EKS cannot change without resetting the number of
 * nodes.
 *
 * @returns The resources that must exist as long as the nodes.
 */
export function createAutoscaler(name: string, deps: AddonDeps, groups: readonly NodeGroup[]): pulumi.Resource[] {
  const { config, account, cluster, parent } = deps;
  const { role, policies } = createRole(
    name,
    {
      partition: account.partition,
      clusterName: config.clusterName,
      description: "scales node groups",
      trust: deps.oidcProvider.apply((provider) => trustServiceAccount(provider, "kube-system", serviceAccount)),
      policy: cluster.arn.apply((clusterArn) => policyOf(...autoscalerStatements({ config, account, clusterArn }))),
    },
    parent,
  );
  const chart = new kubernetes.helm.v3.Release(
    name,
    {
      ...release(charts.clusterAutoscaler, versions.clusterAutoscalerChart),
      namespace: "kube-system",
      values: merged(
        {
          cloudProvider: "aws",
          awsRegion: config.region,
          autoscalingGroups: groups.map(({ limits }) => limits),
          image: {
            repository: deps.services.cachedImage("registry.k8s.io/autoscaling/cluster-autoscaler"),
            tag: cluster.version.apply((version) => `v${autoscalerVersion(version)}`),
          },
          fullnameOverride: serviceAccount,
          rbac: {
            serviceAccount: { name: serviceAccount, annotations: { [identityAnnotations.EKS_AUTH]: role.arn } },
          },
          ...placedOn(config.nodeSelectors.core),
          priorityClassName: "system-cluster-critical",
          resources: { requests: { cpu: "100m", memory: "300Mi" }, limits: { memory: "600Mi" } },
          podDisruptionBudget: { maxUnavailable: 1 },
          extraArgs: {
            "balance-similar-node-groups": true,
            "enforce-node-group-min-size": true,
            "skip-nodes-with-system-pods": false,
            // Pods without a node selector get a core node and never scale up a group of Ray.
            expander: "priority,least-waste",
          },
          expanderPriorities: prioritiesOf(groups),
        },
        config.chartValues.clusterAutoscaler,
      ),
    },
    { parent, provider: deps.kubernetes, dependsOn: [...policies, ...groups] },
  );
  return [chart];
}

/** Returns the priorities of groups by regular expressions; the highest number is preferred. */
function prioritiesOf(groups: readonly NodeGroup[]) {
  const core = groups.filter(({ isCore }) => isCore).map(({ limits }) => pulumi.interpolate`^${limits.name}$`);
  return { 20: core, 10: [".*"] };
}
