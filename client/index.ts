export {
  amountOf,
  type ClusterOptions,
  type ClusterParameters,
  ParameterError,
  parseFileParameters,
  parseParameters,
} from "@tiltyard/platform";
export * from "./catalog/index.ts";
export { type CatalogTarget, requiredCatalog } from "./commands/catalog-target.ts";
export { UsageError } from "./commands/exit-codes.ts";
export { httpUrl, readStack, readYaml } from "./commands/target.ts";
export { type ConnectParameters, connect } from "./kubernetes/connect.ts";
export { ConnectError } from "./kubernetes/connect-error.ts";
export { KubernetesError } from "./kubernetes/kubernetes-error.ts";
export { NamespaceApi } from "./kubernetes/namespace-api.ts";
export { RayClusterApi } from "./ray/cluster-api.ts";
export { type ClusterState, clusterState, formatState } from "./ray/cluster-state.ts";
export { JobError } from "./ray/dashboard.ts";
export * from "./ray/jobs.ts";
export { type LeasedCluster, listRayClusters, reapRayClusters } from "./ray/lease.ts";
export { type LocalRay, LocalRayError, type LocalRayOptions, startLocalRay } from "./ray/local-ray.ts";
export { clusterLabel, nodeTypeLabel, type RayClusterObject, rayClusterSpec, type SecretKey } from "./ray/manifest.ts";
export { ProvisionError, type ProvisionOptions, provisionRayCluster, RayCluster } from "./ray/provision.ts";
export { readyWorkerSettings } from "./ray/ready-workers.ts";
export { submitInTransaction, submitTracked, type TrackedJob, type Tracking } from "./ray/tracked-job.ts";
export { fromStackOutputs, parseStackOutputs } from "./stack-outputs.ts";
