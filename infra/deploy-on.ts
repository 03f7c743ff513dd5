import type * as pulumi from "@pulumi/pulumi";
import type { Cluster, Database } from "./cluster.ts";
import { Catalog, type CatalogArgs } from "./components/catalog/catalog.ts";
import { ExistingCluster, type ExistingClusterArgs } from "./components/existing-cluster.ts";
import { type Definition, readDefinitions } from "./components/ray/chart-definitions.ts";
import { type RayImages, rayImages } from "./components/ray/ray-images.ts";
import { RayPlatform } from "./components/ray/ray-platform.ts";
import { Runner, type RunnerArgs } from "./components/runner/runner.ts";
import type { ExistingConfig, StackConfig } from "./config.ts";
import { type Outputs, rayParameters, stackOutputs } from "./outputs.ts";
import { backupsBucket } from "./settings/catalog-settings.ts";

export interface StackDeps {
  readonly cluster: Cluster;
  /** The database of the catalog. */
  readonly database: "sqlite" | Database;
  /** The resource definitions that the stack manages. */
  readonly definitions: readonly Definition[] | undefined;
}

/** Deploys Ray, the catalog and its runner on a cluster. */
export function deployOn({ cluster, database, definitions }: StackDeps, config: StackConfig): Outputs {
  const platform = createPlatform("ray", { cluster, definitions }, config);
  const images = rayImages("ray", config, cluster, platform);
  const rayClusters = config.runner.enabled ? Object.keys(config.runner.rayClusters) : undefined;
  const catalog = config.catalog.enabled
    ? createCatalog("catalog", { cluster, platform, database, rayClusters }, config)
    : undefined;
  const runner =
    config.runner.enabled && catalog !== undefined
      ? createRunner("runner", { cluster, platform, catalog, images }, config)
      : undefined;
  return stackOutputs({ config, cluster, platform, images, database, catalog, runner });
}

export function createPlatform(
  name: string,
  { cluster, definitions }: Pick<StackDeps, "cluster" | "definitions">,
  config: StackConfig,
  options: pulumi.ComponentResourceOptions = {},
): RayPlatform {
  const { namespace, serviceAccount, operator, monitoring, rayLogs, quota, teams, kueue, chartValues } = config;
  const { deleteNamespace } = config;
  const { allowedNamespaces, bucketAccess } = config.ray;
  const args = {
    ...{ cluster, namespace, serviceAccount, operator, definitions, deleteNamespace, monitoring, rayLogs, quota },
    ...{ teams, kueue, chartValues, allowedNamespaces, bucketAccess },
  };
  return new RayPlatform(name, args, options);
}

export function createCatalog(
  name: string,
  deps: Pick<CatalogArgs, "cluster" | "platform" | "rayClusters"> & Pick<StackDeps, "database">,
  config: StackConfig,
  options: pulumi.ComponentResourceOptions = {},
): Catalog {
  const { enabled, ...settings } = config.catalog;
  const { deleteNamespace, monitoring } = config;
  const deletionProtection = !("deletionProtection" in config) || config.deletionProtection;
  const own = { deleteNamespace, deletionProtection, monitoring };
  return new Catalog(name, { ...own, ...settings, ...deps }, options);
}

export function createRunner(
  name: string,
  { images, ...deps }: Pick<RunnerArgs, "cluster" | "platform" | "catalog"> & { readonly images: RayImages },
  config: StackConfig,
  options: pulumi.ComponentResourceOptions = {},
): Runner {
  const { enabled, ...settings } = config.runner;
  const parameters = rayParameters({ config, platform: deps.platform, images });
  return new Runner(name, { ...deps, parameters, ...settings }, options);
}

/** Reads the resource definitions that the stack manages; undefined where Helm, GKE or another operator does. */
export async function findDefinitions({ operator }: StackConfig, read = readDefinitions) {
  return operator.source === "helm" && operator.crds ? await read(operator) : undefined;
}

/** Creates the cluster of the variant `existing`. */
export function existingCluster(
  name: string,
  config: ExistingConfig & Pick<ExistingClusterArgs, "deployment">,
  options?: pulumi.ComponentResourceOptions,
) {
  return new ExistingCluster(name, { ...config, backups: backupsBucket(config.catalog) }, options);
}
