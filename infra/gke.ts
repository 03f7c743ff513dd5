/** A cluster on GKE with all that Ray and the catalog need: network, nodes, identities, a bucket and a registry. */
import type * as pulumi from "@pulumi/pulumi";
import { GkeCluster } from "./components/gke/gke-cluster.ts";
import { findMissingPools } from "./components/gke/gke-zones.ts";
import { type GkeConfig, withoutPools } from "./config.ts";
import { configOfArgs, type OwnClusterArgs, type Setting } from "./own-clusters.ts";

export type { GkeCluster };

export interface GkeClusterArgs extends OwnClusterArgs<"gke"> {
  /** The release channel by which Google upgrades the cluster; `REGULAR` when absent. */
  readonly releaseChannel?: Setting<"gke", "releaseChannel">;
  /** The window in which Google upgrades the cluster; all weekend when absent. */
  readonly maintenance?: Setting<"gke", "maintenance">;
}

/**
 * Creates a GKE cluster for `RayPlatform` and `Catalog`. The project and the region are those of the provider: `gcp:project`
 * and `gcp:region`.
 *
 * @throws StackConfigError with all invalid arguments.
 */
export async function createGkeCluster(
  name: string,
  args: GkeClusterArgs,
  options?: pulumi.ComponentResourceOptions,
): Promise<GkeCluster> {
  return (await createGke(name, configOfArgs("gke", args), options)).cluster;
}

/** Creates the cluster of a stack. @returns It, and the configuration with the pools that the region offers. */
export async function createGke(name: string, given: GkeConfig, options?: pulumi.ComponentResourceOptions) {
  const config = withoutPools(given, await findMissingPools(given));
  return { config, cluster: new GkeCluster(name, config, options) };
}
