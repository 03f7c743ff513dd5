import type * as pulumi from "@pulumi/pulumi";
import { createAdmissionPolicy } from "../admission-policy.ts";
import { controlClassPrefix } from "./priority-classes.ts";

export interface ClientPolicyArgs {
  /** The namespaces of Ray clusters, the platform's own first. */
  readonly namespaces: readonly [string, ...string[]];
  /** The service account of the pods of Ray clusters in each of them. */
  readonly serviceAccount: string;
}

/** The kinds of KubeRay from which the operator derives pods and services. */
const resources = ["rayclusters", "rayjobs", "rayservices", "raycronjobs"];

/** The operations with which a client determines them. Subresources such as `scale` and `status` have none. */
const operations = ["CREATE", "UPDATE"];

/**
 * The operator removes its finalizers from objects that are being deleted, also from those of before the policy or of a
 * former service account. Only the operator and administrators may change a status, and a client could still change the
 * pod that cleans up after a deleted Ray cluster.
 */
const condition =
  "!has(object.metadata.deletionTimestamp) || !authorizer.group('ray.io').resource('rayclusters').subresource('status')" +
  ".namespace(request.namespace).check('update').allowed()";

/** The pods and the services that the operator derives from an object, and the objects on the way to them. */
const variables = [
  { name: "job", expression: "object.kind == 'RayCronJob' ? object.spec.jobTemplate : object.spec" },
  {
    name: "clusters",
    expression:
      "object.kind == 'RayCluster' ? [object.spec] : has(variables.job.rayClusterSpec) ? " +
      "[variables.job.rayClusterSpec] : has(variables.job.rayClusterConfig) ? [variables.job.rayClusterConfig] : []",
  },
  { name: "heads", expression: "variables.clusters.map(cluster, cluster.headGroupSpec)" },
  {
    name: "workers",
    // An object has one cluster at most.
    expression:
      "variables.clusters.exists(cluster, has(cluster.workerGroupSpecs)) ? variables.clusters[0].workerGroupSpecs : []",
  },
  {
    name: "pods",
    expression:
      "(variables.heads + variables.workers).map(group, group.template.spec) + " +
      "(has(variables.job.submitterPodTemplate) && has(variables.job.submitterPodTemplate.spec) ? " +
      "[variables.job.submitterPodTemplate.spec] : [])",
  },
  {
    name: "services",
    expression:
      "variables.heads.filter(head, has(head.headService)).map(head, head.headService) + " +
      "(has(variables.job.serveService) ? [variables.job.serveService] : [])",
  },
];

/**
 * Restricts what the operator creates for a principal that may create Ray clusters, and that could otherwise:
 *
 * - run pods as the operator, whose account reads the secrets of all teams. A head with an autoscaler that names no account
 *   would run as the one with the name of its cluster.
 * - take over the traffic of the whole cluster to an address, such as the catalog's (CVE-2020-8554).
 * - configure the ingress controller of the cluster by annotations, which the operator copies to the ingress of a head.
 * - evict the pods of the system, of the operator and of the catalog.
 *
 * @returns The policy and its binding, which must exist before clients may create Ray clusters.
 */
export function createClientPolicy(
  name: string,
  { namespaces, serviceAccount }: ClientPolicyArgs,
  options: pulumi.CustomResourceOptions,
): readonly pulumi.Resource[] {
  const head = "cluster.headGroupSpec.template.spec";
  return createAdmissionPolicy(
    name,
    {
      policyName: `tiltyard-ray-clients-${namespaces[0]}`,
      namespaces,
      rule: { apiGroups: ["ray.io"], apiVersions: ["*"], operations, resources },
      condition,
      variables,
      validations: [
        {
          expression: `variables.pods.all(pod, ${hasAccount("pod", serviceAccount)})`,
          message: `Pods of Ray run as the service account ${serviceAccount} here, and as no other one`,
        },
        {
          expression:
            "variables.clusters.all(cluster, !has(cluster.enableInTreeAutoscaling) || !cluster.enableInTreeAutoscaling || " +
            `(has(${head}.serviceAccountName) && ${head}.serviceAccountName != ''))`,
          message: `A head with an autoscaler names its service account: set headGroupSpec.template.spec.serviceAccountName to ${serviceAccount}`,
        },
        {
          expression:
            "variables.services.all(service, !has(service.spec) || !has(service.spec.externalIPs) || " +
            "size(service.spec.externalIPs) == 0)",
          message: "Services of Ray have no externalIPs, which would take over the traffic to these addresses",
        },
        {
          expression: "variables.heads.all(head, !has(head.enableIngress) || !head.enableIngress)",
          message:
            "Heads of Ray have no ingress, which would take its annotations from the Ray cluster. Leave out enableIngress",
        },
        {
          expression:
            "variables.pods.all(pod, !has(pod.priorityClassName) || !(pod.priorityClassName.startsWith('system-') || " +
            `pod.priorityClassName.startsWith('${controlClassPrefix}')))`,
          message: "Pods of Ray have no priority class of the system or of controllers, whose pods they would evict",
        },
      ],
    },
    options,
  );
}

/** Returns whether a pod has an allowed account, which `serviceAccount`, the former name of the field, also determines. */
function hasAccount(pod: string, serviceAccount: string): string {
  const accounts = `['${serviceAccount}', 'default', '']`;
  return ["serviceAccountName", "serviceAccount"]
    .map((field) => `(!has(${pod}.${field}) || ${pod}.${field} in ${accounts})`)
    .join(" && ");
}
