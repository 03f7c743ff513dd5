/**
 * What a stack and the clients on it must agree on without telling each other: `infra/` makes
 * it so, and `client/` expects it of a stack whose outputs it was not given.
 */

/** Geneva's own names, so that its client needs no settings on a default stack. */
export const platformDefaults = {
  clusterName: "lancedb",
  namespace: "lancedb",
  clientRole: "geneva-client-role",
  serviceAccount: "geneva-service-account",
  labelDomain: "geneva.lancedb.com",
  labelKeys: { head: "ray-head", workerCpu: "ray-worker-cpu", workerGpu: "ray-worker-gpu" },
  rayVersion: "2.60.0",
} as const;

/** The value of every node label; on EKS it has to be this one, requirements.md 2.7. */
export const labelValue = "true";

/** What a pod asks for to get a GPU, and the key of the taint that keeps other pods off nodes with one. */
export const gpuResource = "nvidia.com/gpu";

/** The catalog as a workload of Kubernetes, as its service and as its service account. */
export const catalogName = "tiltyard-catalog";
export const catalogPort = 2333;
export const catalogLabels = { "app.kubernetes.io/name": catalogName } as const;
/** The container in its pods that runs it. */
export const catalogContainer = "catalog";

/** The side car in Ray's pods that keeps Ray's logs: its settings in their config map, and what they are told. */
export const rayLogs = {
  settingsFile: "fluent-bit.yaml",
  /** Where Ray writes, and the side car reads. */
  folder: "/tmp/ray",
  variables: { pod: "POD_NAME", cluster: "RAY_CLUSTER" },
} as const;

/** The runner of the catalog's jobs, as a workload of Kubernetes and as its service account. */
export const runnerName = "tiltyard-runner";

/**
 * What the runner does in the namespace of Ray, as rules of a role: jobs with their keys, why their pods wait, and clusters
 * whose lease ended.
 */
export const runnerRights = [
  { apiGroups: ["ray.io"], resources: ["rayjobs"], verbs: ["get", "list", "create", "delete"] },
  { apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["list", "delete"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["create", "patch", "delete"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
] as const;

/** By which annotation of its service account a pod gets an identity in the cloud; requirements.md 5.1. */
export const identityAnnotations = {
  EKS_AUTH: "eks.amazonaws.com/role-arn",
  GKE_AUTH: "iam.gke.io/gcp-service-account",
} as const;

/** The lowest version of Ray that works at all; requirements.md 1 and 8. */
export const rayVersionMin = [2, 43] as const;

/** The lowest version of the KubeRay operator; requirements.md 8. */
export const operatorVersionMin = [1, 1] as const;

/** The container image of a version of Ray, which has one for each kind of processor. */
export function rayImage(version: string, architecture: "amd64" | "arm64" = "amd64"): string {
  return `${rayImageTag(version)}${architecture === "arm64" ? "-aarch64" : ""}`;
}

/** The same for workers with a GPU: it has CUDA's libraries. */
export function rayGpuImage(version: string, architecture: "amd64" | "arm64" = "amd64"): string {
  return `${rayImageTag(version)}-gpu${architecture === "arm64" ? "-aarch64" : ""}`;
}

function rayImageTag(version: string): string {
  return `rayproject/ray:${version}-py312`;
}

/** Whether a version such as `2.60.0` is the given one or a later one. */
export function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [theirMajor = 0, theirMinor = 0] = version.replace(/^v/, "").split(".").map(Number);
  return theirMajor > major || (theirMajor === major && theirMinor >= minor);
}
