/** A cluster on EKS with all that Ray and the catalog need: network, nodes, identities, a bucket and a registry. */
import type * as pulumi from "@pulumi/pulumi";
import { findEksAccount } from "./components/eks/eks-account.ts";
import { EksCluster } from "./components/eks/eks-cluster.ts";
import { findEksZones } from "./components/eks/eks-zones.ts";
import { findLogGroups } from "./components/eks/log-groups.ts";
import { type EksConfig, withoutPools } from "./config.ts";
import { configOfArgs, type OwnClusterArgs, type Setting } from "./own-clusters.ts";

export type { EksCluster };

export interface EksClusterArgs extends OwnClusterArgs<"eks"> {
  /** The principals that may assume the client role, at least one. */
  readonly clientPrincipals: readonly string[];
  /** The name of the role that clients assume. It must be unique in the account, and depends on `clusterName` when absent. */
  readonly clientRole?: string;
  /** With `cluster` the client role administers the cluster, as Geneva expects; with `namespace` it creates Ray clusters. */
  readonly clientAccess?: Setting<"eks", "clientAccess">;
  /** `EXTENDED` keeps a version of Kubernetes after its standard support, for a surcharge; `STANDARD` when absent. */
  readonly supportType?: Setting<"eks", "supportType">;
  /** The release of the nodes' image, or `newest`. Groups keep their first release when absent. */
  readonly nodeRelease?: string;
}

/**
 * Creates an EKS cluster for `RayPlatform` and `Catalog`. The region is that of the provider: `aws:region`.
 *
 * @throws StackConfigError with all invalid arguments.
 */
export async function createEksCluster(
  name: string,
  args: EksClusterArgs,
  options?: pulumi.ComponentResourceOptions,
): Promise<EksCluster> {
  return (await createEks(name, configOfArgs("eks", args), options)).cluster;
}

/** Creates the cluster of a stack. @returns It, and the configuration with the pools that the region offers. */
export async function createEks(name: string, given: EksConfig, options?: pulumi.ComponentResourceOptions) {
  const [account, zones, logGroups] = await Promise.all([
    findEksAccount(given),
    findEksZones(given),
    findLogGroups(given),
  ]);
  const missing = [...zones.pools].flatMap(([pool, its]) => (its.length === 0 ? [pool] : []));
  const config = withoutPools(given, missing);
  return { config, cluster: new EksCluster(name, { config, account, zones, logGroups }, options) };
}
