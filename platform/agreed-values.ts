/**
 * The values that a stack and its clients must agree on without communication: `infra/` uses them, and `client/`
 * assumes them for a stack whose outputs it does not know.
 */

/** The names that Geneva uses by default, so that its client needs no settings on a default stack. */
export const platformDefaults = {
  clusterName: "lancedb",
  namespace: "lancedb",
  clientRole: "geneva-client-role",
  serviceAccount: "geneva-service-account",
  labelDomain: "geneva.lancedb.com",
  labelKeys: { head: "ray-head", workerCpu: "ray-worker-cpu", workerGpu: "ray-worker-gpu" },
  rayVersion: "2.60.0",
} as const;

/** The value of every node label. EKS requires exactly this value. */
export const labelValue = "true";

/** The resource that a pod requests to get a GPU, and the key of the taint that repels other pods from nodes with GPUs. */
export const gpuResource = "nvidia.com/gpu";

/** The name of the catalog as a Kubernetes workload, service and service account. */
export const catalogName = "tiltyard-catalog";
export const catalogPort = 2333;
export const catalogLabels = { "app.kubernetes.io/name": catalogName } as const;
/** The container that runs the catalog in its pods. */
export const catalogContainer = "catalog";

/** The side car in Ray's pods that preserves Ray's logs: the key of its settings in their config map, and its variables. */
export const rayLogs = {
  settingsFile: "fluent-bit.yaml",
  /** The folder that Ray writes and the side car reads. */
  folder: "/tmp/ray",
  variables: { pod: "POD_NAME", cluster: "RAY_CLUSTER" },
} as const;

/** The name of the runner as a Kubernetes workload and service account. */
export const runnerName = "tiltyard-runner";
/** The label that only objects of the runner have. The API server lets it change no other secrets. */
export const managedByRunner = { "app.kubernetes.io/managed-by": runnerName } as const;

/**
 * The rights of the runner in the namespace of Ray, as rules of a role: jobs with their keys, the reasons of waiting
 * pods, and clusters with an expired lease.
 */
export const runnerRights = [
  { apiGroups: ["ray.io"], resources: ["rayjobs"], verbs: ["get", "list", "create", "delete"] },
  { apiGroups: ["ray.io"], resources: ["rayclusters"], verbs: ["list", "delete"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["create", "patch", "delete"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
] as const;

/** Returns the user that the API server knows a service account by, which is also the subject of its tokens. */
export function userOfAccount(namespace: string, serviceAccount: string): string {
  return `system:serviceaccount:${namespace}:${serviceAccount}`;
}

/** The annotation of a service account that assigns a cloud identity to its pods. */
export const identityAnnotations = {
  EKS_AUTH: "eks.amazonaws.com/role-arn",
  GKE_AUTH: "iam.gke.io/gcp-service-account",
} as const;

/** The lowest supported version of Ray. */
export const rayVersionMin = [2, 43] as const;

/** The lowest supported version of the KubeRay operator. */
export const operatorVersionMin = [1, 1] as const;

/** Returns the container image of a version of Ray for a kind of processor. */
export function rayImage(version: string, architecture: "amd64" | "arm64" = "amd64"): string {
  return `${rayImageTag(version)}${architecture === "arm64" ? "-aarch64" : ""}`;
}

/** Returns the container image of a version of Ray for workers with a GPU, which contains CUDA's libraries. */
export function rayGpuImage(version: string, architecture: "amd64" | "arm64" = "amd64"): string {
  return `${rayImageTag(version)}-gpu${architecture === "arm64" ? "-aarch64" : ""}`;
}

function rayImageTag(version: string): string {
  return `rayproject/ray:${version}-py312`;
}

/** Reports whether a version such as `2.60.0` is at least the given one. */
export function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [theirMajor = 0, theirMinor = 0] = version.replace(/^v/, "").split(".").map(Number);
  return theirMajor > major || (theirMajor === major && theirMinor >= minor);
}
