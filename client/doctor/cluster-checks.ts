import {
  ApiextensionsV1Api,
  AuthorizationV1Api,
  CoreV1Api,
  type KubeConfig,
  type V1Node,
  type V1Pod,
  type V1ResourceAttributes,
} from "@kubernetes/client-node";
import {
  type ClusterParameters,
  gpuResource,
  identityAnnotations,
  isAtLeast,
  operatorVersionMin,
  runnerName,
  userOfAccount,
} from "@tiltyard/platform";
import { ownValue } from "@tiltyard/protocol";
import { rayClusters } from "../ray/manifest.ts";
import { bucketPod, type PodOptions, runBucketPod } from "./bucket-pod.ts";
import { catalogPods } from "./catalog-pods.ts";
import { type Check, type Finding, failed, type Outcome, ok, runChecks, skipped, warning } from "./finding.ts";

/** A cluster to check. */
export interface ClusterTarget extends PodOptions {
  readonly config: KubeConfig;
  readonly parameters: ClusterParameters;
  /** The namespace of the catalog's pods; that of Ray when absent. */
  readonly catalogNamespace?: string | undefined;
  /** The part of the bucket that pods use; undefined if no stack is named. */
  readonly bucketUri?: string | undefined;
  /** The access of pods to the bucket; undefined if no stack is named. */
  readonly bucketAccess?: "direct" | "vended" | undefined;
  /** True if the stack has a runner for jobs; undefined if no stack is named. */
  readonly runsJobs?: boolean | undefined;
  /** The maximum number of nodes that the autoscaler creates for each role; undefined if unknown. */
  readonly nodeLimits?: Readonly<Record<"head" | "workerCpu" | "workerGpu", number>> | undefined;
  /** Allows the creation of a pod that uses the bucket; true when absent. */
  readonly makePod?: boolean | undefined;
}

interface Tools extends ClusterTarget {
  readonly core: CoreV1Api;
  readonly authorization: AuthorizationV1Api;
  readonly extensions: ApiextensionsV1Api;
}

const checks: readonly Check<Tools>[] = [
  ["namespace", checkNamespace],
  ["definition of RayClusters", checkDefinition],
  ["operator runs", checkOperator],
  ["service account", checkServiceAccount],
  ["service account may get pods", (tools) => checkRights(tools, "pods", ["get", "list", "watch"], "")],
  [
    "service account may change RayClusters",
    (tools) => checkRights(tools, "rayclusters", ["get", "patch", "delete"], rayClusters.group),
  ],
  ["identity of the service account", checkIdentity],
  ["you may create RayClusters", checkClient],
  ["head nodes", (tools) => checkNodes(tools, "head")],
  ["CPU worker nodes", (tools) => checkNodes(tools, "workerCpu")],
  ["GPU worker nodes", (tools) => checkNodes(tools, "workerGpu")],
  ["pods reach the bucket", checkBucket],
  ["runner of jobs", checkRunner],
];

/** Checks a cluster. A check that throws an error reports it as its outcome. */
export function examineCluster(target: ClusterTarget): Promise<readonly Finding[]> {
  const { config, runsJobs } = target;
  const tools: Tools = {
    ...target,
    core: config.makeApiClient(CoreV1Api),
    authorization: config.makeApiClient(AuthorizationV1Api),
    extensions: config.makeApiClient(ApiextensionsV1Api),
  };
  const relevant = checks.filter(([, run]) => run !== checkRunner || runsJobs !== undefined);
  return runChecks(relevant, tools, outcomeOf);
}

function outcomeOf(error: unknown): Outcome {
  const status = error instanceof Error && "code" in error ? error.code : undefined;
  if (status === 403) return skipped("you may not read it", "run the doctor as a principal with more rights");
  const { cause, message } = error instanceof Error ? error : { cause: undefined, message: String(error) };
  const reason = (cause instanceof Error ? cause.message : message).split("\n")[0] ?? "";
  return failed(reason, "is the API server reachable from here?");
}

/** Returns the response, or undefined if the object does not exist. */
async function orUndefined<Answer>(work: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === 404) return undefined;
    throw error;
  }
}

async function checkNamespace({ core, parameters: { namespace } }: Tools): Promise<Outcome> {
  const found = await orUndefined(core.readNamespace({ name: namespace }));
  return found === undefined
    ? failed(`${namespace} does not exist`, "run pulumi up, or name another with --namespace")
    : ok(namespace);
}

const installOperator = `install the KubeRay operator ${operatorVersionMin.join(".")} or later`;

async function checkDefinition({ extensions }: Tools): Promise<Outcome> {
  const name = `${rayClusters.plural}.${rayClusters.group}`;
  const found = await orUndefined(extensions.readCustomResourceDefinition({ name }));
  if (found === undefined) return failed("the API server does not serve them", installOperator);
  const versions = found.spec.versions.filter((each) => each.served).map((each) => each.name);
  return versions.includes(rayClusters.version)
    ? ok(versions.join(", "))
    : failed(`it serves ${versions.join(", ")}, not v1`, installOperator);
}

async function checkOperator({ core }: Tools): Promise<Outcome> {
  const { items } = await core.listPodForAllNamespaces({ labelSelector: "app.kubernetes.io/name=kuberay-operator" });
  const first = items.find(isReady);
  if (first !== undefined) {
    const where = `${first.metadata?.namespace}/${first.metadata?.name}`;
    const image = first.spec?.containers[0]?.image ?? "";
    const version = /:v?(\d+\.\d+\.\d+)/.exec(image)?.[1];
    if (version === undefined) return ok(`${where}, ${image}`);
    return isAtLeast(version, operatorVersionMin)
      ? ok(`${version} as ${where}`)
      : failed(`${where} is ${version}`, installOperator);
  }
  // GKE's add-on runs on Google's control plane, which is not visible here.
  return warning(
    items.length === 0 ? "its pod is not visible" : "its pod is not ready",
    "unless it is GKE's own add-on: kubectl get pods -A -l app.kubernetes.io/name=kuberay-operator",
  );
}

async function checkServiceAccount({ core, parameters: { namespace, serviceAccount } }: Tools): Promise<Outcome> {
  const found = await orUndefined(core.readNamespacedServiceAccount({ name: serviceAccount, namespace }));
  return found === undefined
    ? failed(`${serviceAccount} is not in ${namespace}`, "run pulumi up, or name another with service_account")
    : ok(serviceAccount);
}

async function checkRights(
  { authorization, parameters: { namespace, serviceAccount } }: Tools,
  resource: string,
  verbs: readonly string[],
  group: string,
): Promise<Outcome> {
  const user = userOfAccount(namespace, serviceAccount);
  const refused: string[] = [];
  for (const verb of verbs) {
    const resourceAttributes = { namespace, resource, verb, group };
    const { status } = await authorization.createSubjectAccessReview({ body: { spec: { user, resourceAttributes } } });
    if (!status?.allowed) refused.push(verb);
  }
  if (refused.length === 0) return ok(verbs.join(", "));
  return failed(
    `it may not ${refused.join(", ")} ${resource}`,
    `bind the cluster role ${serviceAccount}-role to it: run pulumi up`,
  );
}

async function checkIdentity({ core, parameters }: Tools): Promise<Outcome> {
  const { configMethod, namespace, serviceAccount } = parameters;
  if (configMethod !== "EKS_AUTH" && configMethod !== "GKE_AUTH") return skipped("only on EKS and GKE");
  const annotation = identityAnnotations[configMethod];
  const found = await orUndefined(core.readNamespacedServiceAccount({ name: serviceAccount, namespace }));
  const identity = found?.metadata?.annotations?.[annotation];
  return identity === undefined
    ? failed(`${serviceAccount} has no annotation ${annotation}`, "pods cannot reach the bucket: run pulumi up")
    : ok(identity);
}

async function checkClient({ authorization, parameters: { namespace, auth } }: Tools): Promise<Outcome> {
  const needed: V1ResourceAttributes[] = [
    ...["create", "get", "list", "patch", "delete"].map((verb) => ({
      verb,
      resource: "rayclusters",
      group: rayClusters.group,
    })),
    { verb: "list", resource: "pods" },
    { verb: "create", resource: "pods", subresource: "portforward" },
    // This secret contains the token of a Ray cluster.
    ...(auth === "token" ? [{ verb: "get", resource: "secrets" }] : []),
  ];
  const refused: string[] = [];
  for (const attributes of needed) {
    const resourceAttributes = { ...attributes, namespace };
    const { status } = await authorization.createSelfSubjectAccessReview({ body: { spec: { resourceAttributes } } });
    const { verb, resource, subresource } = attributes;
    if (!status?.allowed) refused.push(`${verb} ${resource}${subresource ? `/${subresource}` : ""}`);
  }
  if (refused.length === 0) return ok(`in ${namespace}`);
  return failed(`you may not ${refused.join(", ")}`, "request membership in clientPrincipals of the stack");
}

/** The labels of machines that clouds and autoscalers may reclaim. */
const spotLabels: readonly (readonly [string, string])[] = [
  ["cloud.google.com/gke-spot", "true"],
  ["cloud.google.com/gke-preemptible", "true"],
  ["eks.amazonaws.com/capacityType", "SPOT"],
  ["karpenter.sh/capacity-type", "spot"],
  ["kubernetes.azure.com/scalesetpriority", "spot"],
];

async function checkNodes(
  { core, parameters, nodeLimits }: Tools,
  role: "head" | "workerCpu" | "workerGpu",
): Promise<Outcome> {
  const selector = parameters.nodeSelectors[role];
  const labelSelector = Object.entries(selector)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
  const { items } = await core.listNode({ labelSelector });
  const limit = nodeLimits?.[role] ?? 0;
  if (items.length === 0 && limit > 0)
    return ok(`none now; the autoscaler creates up to ${limit} with ${labelSelector}`);
  if (items.length === 0) {
    const advice =
      "correct if the autoscaler creates them on demand; otherwise label nodes: kubectl label node NODE " +
      labelSelector;
    return warning(`none now with ${labelSelector}`, advice);
  }
  const spot = items.filter(isSpot).map((node) => node.metadata?.name);
  if (role === "head" && spot.length > 0)
    return failed(`${spot.join(", ")} may disappear at any time (spot)`, "label nodes that are not spot");
  const withoutGpu = items.filter((node) => !Number(node.status?.allocatable?.[gpuResource] ?? 0));
  if (role === "workerGpu" && withoutGpu.length > 0)
    return failed(
      `${withoutGpu.map((node) => node.metadata?.name).join(", ")} offers no ${gpuResource}`,
      "install the GPU device plugin; does it tolerate the nodes' taints?",
    );
  return ok(`${items.length} with ${labelSelector}`);
}

function isSpot({ metadata }: V1Node): boolean {
  return spotLabels.some(([key, value]) => ownValue(metadata?.labels ?? {}, key) === value);
}

/** Checks the bucket with a pod that uses it like the pods of Ray clusters. */
async function checkBucket(tools: Tools): Promise<Outcome> {
  const { core, parameters, catalogNamespace, bucketUri, bucketAccess, makePod = true } = tools;
  const { configMethod, namespace, serviceAccount } = parameters;
  if (bucketAccess === "vended") return skipped("pods use the bucket with credentials of the catalog alone");
  if (configMethod !== "EKS_AUTH" && configMethod !== "GKE_AUTH") return skipped("only on EKS and GKE");
  if (!makePod) return skipped("no pod was requested");
  if ((await orUndefined(core.readNamespacedServiceAccount({ name: serviceAccount, namespace }))) === undefined)
    return skipped("the service account does not exist");
  const [catalog] = await catalogPods(core, catalogNamespace ?? namespace);
  if (catalog === undefined) return skipped("the image of the catalog, which contains the check, is missing");
  const pod = bucketPod(catalog, { namespace, serviceAccount, bucketUri });
  const { identity, problem, warehouse } = await runBucketPod(core, pod, tools);
  if (problem === undefined) return ok(`${warehouse}, as ${identity}`);
  return failed(
    `${warehouse}, as ${identity}: ${problem}`,
    "the identity of the service account needs the bucket: run pulumi up",
  );
}

function isReady({ status }: V1Pod): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
}

async function checkRunner({ core, catalogNamespace, runsJobs }: Tools): Promise<Outcome> {
  if (!runsJobs || catalogNamespace === undefined) return skipped("the stack runs no jobs");
  const label = `app.kubernetes.io/name=${runnerName}`;
  const { items } = await core.listNamespacedPod({ namespace: catalogNamespace, labelSelector: label });
  const ready = items.find(isReady);
  if (ready !== undefined) return ok(`${catalogNamespace}/${ready.metadata?.name}`);
  return failed(
    items.length === 0 ? "its pod does not exist" : "its pod is not ready",
    `jobs wait until it runs; its log has the reason: kubectl logs -n ${catalogNamespace} -l ${label} --previous`,
  );
}
