import type * as pulumi from "@pulumi/pulumi";
import { type Definition, readDefinitions } from "./chart-definitions.ts";
import type { Cluster, Database } from "./cluster.ts";
import { Catalog } from "./components/catalog/catalog.ts";
import { ExistingCluster } from "./components/existing-cluster.ts";
import { rayImages } from "./components/ray/ray-images.ts";
import { RayPlatform } from "./components/ray/ray-platform.ts";
import { Runner } from "./components/runner/runner.ts";
import type { ExistingConfig, StackConfig } from "./config.ts";
import { type Outputs, rayParameters, stackOutputs } from "./outputs.ts";

export interface Foundation {
  readonly cluster: Cluster;
  /** The database of the catalog. */
  readonly database: "sqlite" | Database;
  /** The resource definitions that the stack manages. */
  readonly definitions: readonly Definition[] | undefined;
}

export interface NamingOptions {
  /** The component that everything belongs to, and the prefix of its names; absent in a program of its own. */
  readonly parent?: pulumi.Resource;
  readonly name?: string;
}

/** Deploys Ray, the catalog and its runner on a cluster. */
export function deployOn(
  { cluster, database, definitions }: Foundation,
  config: StackConfig,
  { parent, name }: NamingOptions = {},
): Outputs {
  const named = (part: string) => (name === undefined ? part : `${name}-${part}`);
  const below = parent === undefined ? {} : { parent };
  const { namespace, serviceAccount, operator, monitoring, rayLogs, quota, teams, kueue, chartValues } = config;
  const deleteNamespace = "deleteNamespace" in config && config.deleteNamespace;
  const { allowedNamespaces, bucketAccess } = config.ray;
  const platformArgs = {
    ...{ cluster, namespace, serviceAccount, operator, definitions, deleteNamespace, monitoring, rayLogs, quota },
    ...{ teams, kueue, chartValues, allowedNamespaces, bucketAccess },
  };
  const platform = new RayPlatform(named("ray"), platformArgs, below);
  const images = rayImages(named("ray"), config, cluster, platform);
  const { enabled, ...settings } = config.catalog;
  const deletionProtection = !("deletionProtection" in config) || config.deletionProtection;
  const imageDigests = "imageDigests" in config ? config.imageDigests : {};
  const args = {
    cluster,
    platform,
    deleteNamespace,
    deletionProtection,
    monitoring,
    imageDigests,
    rayClusters: config.runner.enabled ? Object.keys(config.runner.rayClusters) : undefined,
    ...settings,
    database,
  };
  const catalog = enabled ? new Catalog(named("catalog"), args, below) : undefined;
  const { enabled: hasRunner, ...runnerSettings } = config.runner;
  const parameters = rayParameters({ config, platform, images });
  const runner =
    hasRunner && catalog !== undefined
      ? new Runner(named("runner"), { cluster, platform, catalog, parameters, ...runnerSettings }, below)
      : undefined;
  return stackOutputs({ config, cluster, platform, images, database, catalog, runner });
}

/** Reads the resource definitions that the stack manages; undefined where Helm, GKE or another operator does. */
export async function findDefinitions({ operator }: StackConfig, read = readDefinitions) {
  return operator.source === "helm" && operator.crds ? await read(operator) : undefined;
}

/** Creates the cluster of the variant `existing`. */
export function existingCluster(name: string, config: ExistingConfig, options?: pulumi.ComponentResourceOptions) {
  const { litestream } = config.catalog;
  const backups = typeof litestream === "object" ? litestream.bucket : undefined;
  return new ExistingCluster(name, { ...config, backups }, options);
}
