import * as pulumi from "@pulumi/pulumi";
import { catalogName, type StackOutputs, secretOutputs } from "@tiltyard/platform";
import type { Cluster, Database } from "./cluster.ts";
import type { Catalog } from "./components/catalog/catalog.ts";
import type { RayImages } from "./components/ray/ray-images.ts";
import type { PlatformParts, RayPlatform } from "./components/ray/ray-platform.ts";
import type { Runner } from "./components/runner/runner.ts";
import type { StackConfig } from "./config.ts";
import type { NodeRole } from "./node-pools.ts";
import { createsDatabase } from "./settings/catalog-settings.ts";
import { fileFolder } from "./settings/setting-types.ts";

/** The outputs in the program. Some are known only after the deployment. */
export type Outputs = { readonly [Name in keyof StackOutputs]: pulumi.Input<StackOutputs[Name]> };

interface Deployed {
  readonly config: StackConfig;
  readonly cluster: Cluster;
  readonly platform: RayPlatform;
  readonly images: RayImages;
  readonly database: "sqlite" | Database;
  readonly catalog: Catalog | undefined;
  readonly runner: Runner | undefined;
}

/** Returns the outputs for other programs. Outputs that a variant does not have are omitted. */
export function stackOutputs(deployed: Deployed): Outputs {
  const { config, cluster, platform, images, catalog, runner } = deployed;
  const outputs: Outputs = {
    variant: config.variant,
    ...cluster.access,
    namespace: platform.namespace,
    serviceAccount: platform.serviceAccount,
    headNodeSelector: config.nodeSelectors.head,
    workerCpuNodeSelector: config.nodeSelectors.workerCpu,
    workerGpuNodeSelector: config.nodeSelectors.workerGpu,
    headPriorityClass: platform.headPriorityClass,
    nodeLimits: nodeLimits(config),
    operatorVersion: config.operator.source === "none" ? undefined : config.operator.version,
    rayVersion: config.ray.version,
    rayAuth: config.ray.auth,
    rayImage: images.image,
    rayGpuImage: images.gpuImage,
    rayLogs: logsOf(platform),
    bucketUri: cluster.services.bucketUri,
    rayBucketAccess: config.ray.bucketAccess,
    tablesVolume: tablesVolume(config),
    queue: platform.queue,
    teams: teamsOf(platform),
    keptOnDestroy: keptOnDestroy(deployed),
    ...(catalog && {
      catalogNamespace: catalog.namespace,
      catalogUrl: catalog.url,
      catalogService: catalogName,
      catalogPublicUrl: catalog.publicUrl,
      catalogApiKey: catalog.apiKey,
    }),
    jobRayClusters: runner && [...runner.rayClusters],
  };
  const present = Object.entries(outputs).filter(([, value]) => value !== undefined);
  const secrets: readonly string[] = secretOutputs;
  return Object.fromEntries(
    present.map(([name, value]) => [name, secrets.includes(name) ? pulumi.secret(value) : value]),
  ) as Outputs;
}

function teamsOf({ teams }: RayPlatform): Outputs["teams"] {
  if (teams.length === 0) return undefined;
  const entries = teams.map(({ name, namespace, bucketUri, roleName }) =>
    pulumi
      .all([bucketUri, roleName])
      .apply(
        ([uri, role]) => [name, { namespace, bucketUri: uri, ...(role !== undefined && { roleName: role }) }] as const,
      ),
  );
  return pulumi.all(entries).apply((all) => Object.fromEntries(all));
}

function logsOf({ logs }: Pick<PlatformParts, "logs">): Outputs["rayLogs"] {
  return logs && pulumi.output(logs.image).apply((image) => ({ image, configMap: logs.configMap }));
}

/** Returns the parameters of a Ray cluster that the settings determine (docs/reference/ray-cluster.md). */
export function rayParameters(parts: Pick<Deployed, "config" | "images"> & { readonly platform: PlatformParts }) {
  const { config, platform, images } = parts;
  const { head, workerCpu, workerGpu } = config.nodeSelectors;
  const [volume, logs] = [tablesVolume(config), logsOf(platform)];
  return {
    ray_version: config.ray.version,
    auth: config.ray.auth,
    image: images.image,
    gpu_image: images.gpuImage,
    node_selectors: { head, workerCpu, workerGpu },
    ...(volume !== undefined && { volumes: [volume] }),
    ...(logs !== undefined && { logs }),
  };
}

/**
 * Returns the claim with the tables of a `file:` bucket and its mount path, which is the path of the URI so that
 * locations remain valid.
 */
function tablesVolume(config: StackConfig): StackOutputs["tablesVolume"] {
  if (config.variant !== "existing" || config.catalog.volumeClaim === undefined) return undefined;
  return { claim: config.catalog.volumeClaim, path: fileFolder(config.bucket) };
}

function nodeLimits(config: StackConfig): StackOutputs["nodeLimits"] {
  if (!("nodePools" in config)) return undefined;
  const most = (role: NodeRole) =>
    config.nodePools.filter((pool) => pool.role === role).reduce((sum, { max }) => sum + max, 0);
  return { head: most("head"), workerCpu: most("workerCpu"), workerGpu: most("workerGpu") };
}

/** Returns the objects that `pulumi destroy` retains: buckets that it adopted or keeps, and the last copy of a database. */
function keptOnDestroy({ config, cluster, database, catalog }: Deployed): Outputs["keptOnDestroy"] {
  if (config.variant === "existing") return undefined;
  const { bucket, keepData } = config;
  const { litestream } = config.catalog;
  const finalSnapshot = database === "sqlite" ? undefined : database.finalSnapshot;
  const hasOwnBackups = typeof litestream === "object" || keepData;
  const kept = [
    ...(bucket !== undefined || keepData ? [cluster.services.bucketUri] : []),
    ...(catalog?.backupsUri !== undefined && hasOwnBackups ? [catalog.backupsUri] : []),
    ...(finalSnapshot !== undefined ? [pulumi.interpolate`snapshot ${finalSnapshot} of RDS`] : []),
    ...(catalog !== undefined && config.variant === "gke" && createsDatabase(config.catalog)
      ? ["the final backup of the Cloud SQL instance, for 30 days"]
      : []),
  ];
  return pulumi.all(kept);
}
