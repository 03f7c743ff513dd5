import * as kubernetes from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { Cluster } from "../../cluster.ts";
import { placedOn } from "../../node-pools.ts";
import { type ChartValues, merged } from "../../settings/chart-values.ts";
import type { OperatorSettings } from "../../settings/settings.ts";
import { charts } from "../../versions.ts";
import { type Definition, isInRepository } from "./chart-definitions.ts";
import { priorityClasses } from "./priority-classes.ts";
import { createDefinitions, refuseSecondOperator } from "./ray-definitions.ts";

/** The labels that the chart sets on the operator's pods. */
const operatorLabels = { "app.kubernetes.io/name": "kuberay-operator" };
/**
 * The selector of those pods. A client of Ray also chooses labels, but not that by which KubeRay marks each pod of a Ray
 * cluster.
 */
export const operatorPods = {
  matchLabels: operatorLabels,
  matchExpressions: [{ key: "ray.io/cluster", operator: "DoesNotExist" }],
};
export const operatorMetricsPort = 8080;

export interface KubeRayOperatorArgs {
  readonly cluster: Cluster;
  /** The namespaces of Ray clusters. The operator is in the first one. */
  readonly namespaces: readonly [string, ...string[]];
  readonly operator: OperatorSettings;
  /** Resource definitions, which are created and upgraded before the operator; undefined where Helm installs them. */
  readonly definitions: readonly Definition[] | undefined;
  /** Values that are merged with those of the stack. */
  readonly values: ChartValues | undefined;
  /** The resources that its pods need: their namespace and their priority class. */
  readonly before: readonly pulumi.Resource[];
}

/**
 * The KubeRay operator from its chart, installed in the first namespace of Ray clusters and restricted to all of them.
 * GKE's add-on is part of the cluster, and an existing operator needs no resources.
 */
export class KubeRayOperator extends pulumi.ComponentResource {
  constructor(
    name: string,
    { cluster, namespaces, operator, definitions, values, before }: KubeRayOperatorArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super("tiltyard:infra:KubeRayOperator", name, {}, options);
    const [namespace] = namespaces;
    const inCluster = { parent: this, provider: cluster.kubernetes, dependsOn: [...before] };
    if (operator.source === "helm") {
      const known = createDefinitions(name, definitions ?? [], inCluster);
      const check = (suffix: string, change: "creation" | "update") =>
        cluster.kubernetes.beforeCreate(`${name}-${suffix}`, refuseSecondOperator(namespaces, operatorLabels, change));
      new kubernetes.helm.v3.Release(
        name,
        {
          name: "kuberay-operator",
          chart: operator.chart,
          version: operator.version,
          // The provider would look for any chart in the repository.
          ...(isInRepository(operator.chart) && { repositoryOpts: { repo: operator.repository } }),
          namespace,
          atomic: true,
          skipCrds: definitions !== undefined,
          timeout: 600,
          values: merged(
            {
              watchNamespace: [...namespaces],
              singleNamespaceInstall: true,
              ...(operator.chart === charts.kuberayOperator.chart && {
                image: { repository: cluster.services.cachedImage("quay.io/kuberay/operator") },
              }),
              ...placedOn(cluster.coreSelector),
              priorityClassName: priorityClasses(namespace).control,
              resources: { requests: { cpu: "100m", memory: "256Mi" }, limits: { memory: "512Mi" } },
              podSecurityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                runAsNonRoot: true,
                capabilities: { drop: ["ALL"] },
              },
            },
            values,
          ),
        },
        {
          ...inCluster,
          dependsOn: [...before, ...known],
          // The chart creates roles in all namespaces, among them those that the former operator watches, too.
          deleteBeforeReplace: true,
          hooks: { beforeCreate: [check("only-one", "creation")], beforeUpdate: [check("no-other", "update")] },
        },
      );
    }
    this.registerOutputs();
  }
}
