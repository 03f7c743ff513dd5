import type * as pulumi from "@pulumi/pulumi";
import { createAdmissionPolicy } from "../admission-policy.ts";

export interface AccountPolicyArgs {
  /** The namespaces of Ray clusters, the platform's own first. */
  readonly namespaces: readonly [string, ...string[]];
  /** The service account of the pods of Ray clusters in each of them. */
  readonly serviceAccount: string;
}

/** The kinds of KubeRay from which the operator derives pods. */
const resources = ["rayclusters", "rayjobs", "rayservices", "raycronjobs"];

/** The operations with which a client determines the pods. Subresources such as `scale` and `status` have none. */
const operations = ["CREATE", "UPDATE"];

/**
 * Restricts the pods of Ray to their own service account. The operator creates the pods, so a principal that may create
 * Ray clusters could otherwise run pods as the operator, whose account reads the secrets of all teams. A head with an
 * autoscaler that names no account would run as the one with the name of its cluster.
 *
 * @returns The policy and its binding, which must exist before clients may create Ray clusters.
 */
export function createAccountPolicy(
  name: string,
  { namespaces, serviceAccount }: AccountPolicyArgs,
  options: pulumi.CustomResourceOptions,
): readonly pulumi.Resource[] {
  const head = "cluster.headGroupSpec.template.spec";
  return createAdmissionPolicy(
    name,
    {
      policyName: `tiltyard-ray-accounts-${namespaces[0]}`,
      namespaces,
      rule: { apiGroups: ["ray.io"], apiVersions: ["*"], operations, resources },
      variables: [
        { name: "job", expression: "object.kind == 'RayCronJob' ? object.spec.jobTemplate : object.spec" },
        {
          name: "clusters",
          expression:
            "object.kind == 'RayCluster' ? [object.spec] : has(variables.job.rayClusterSpec) ? " +
            "[variables.job.rayClusterSpec] : has(variables.job.rayClusterConfig) ? [variables.job.rayClusterConfig] : []",
        },
      ],
      validations: [
        ...[
          `variables.clusters.all(cluster, ${allowed(head, serviceAccount)})`,
          "variables.clusters.all(cluster, !has(cluster.workerGroupSpecs) || cluster.workerGroupSpecs.all(group, " +
            `${allowed("group.template.spec", serviceAccount)}))`,
          "!has(variables.job.submitterPodTemplate) || !has(variables.job.submitterPodTemplate.spec) || " +
            `(${allowed("variables.job.submitterPodTemplate.spec", serviceAccount)})`,
        ].map((expression) => ({
          expression,
          message: `Pods of Ray run as the service account ${serviceAccount} here, and as no other one`,
        })),
        {
          expression:
            "variables.clusters.all(cluster, !has(cluster.enableInTreeAutoscaling) || !cluster.enableInTreeAutoscaling || " +
            `(has(${head}.serviceAccountName) && ${head}.serviceAccountName != ''))`,
          message: `A head with an autoscaler names its service account: set headGroupSpec.template.spec.serviceAccountName to ${serviceAccount}`,
        },
      ],
    },
    options,
  );
}

/** Returns whether a pod has an allowed account, which `serviceAccount`, the former name of the field, also determines. */
function allowed(pod: string, serviceAccount: string): string {
  const accounts = `['${serviceAccount}', 'default', '']`;
  return ["serviceAccountName", "serviceAccount"]
    .map((field) => `(!has(${pod}.${field}) || ${pod}.${field} in ${accounts})`)
    .join(" && ");
}
