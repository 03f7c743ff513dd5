/**
 * The parts of a stack for other Pulumi programs: an environment for Ray clusters, and the catalog, on a cluster of the
 * program. A cluster of a different kind is a component that implements {@link Cluster}.
 */
export type {
  Backups,
  CloudServices,
  Cluster,
  Database,
  IdentityArgs,
  ImageRepository,
  PodIdentity,
  TeamClient,
  TeamClientArgs,
} from "./cluster.ts";
export { Catalog, type CatalogArgs } from "./components/catalog/catalog.ts";
export { ExistingCluster, type ExistingClusterArgs } from "./components/existing-cluster.ts";
export { OwnServices, type OwnServicesArgs } from "./components/own-services.ts";
export { RayPlatform, type RayPlatformArgs } from "./components/ray/ray-platform.ts";
export { Runner, type RunnerArgs } from "./components/runner/runner.ts";
