/** Clusters of clouds with all that Ray and the catalog need: network, nodes, identities, a bucket and a registry. */
import * as pulumi from "@pulumi/pulumi";
import type { z } from "zod";
import { findEksAccount } from "./components/eks/eks-account.ts";
import { EksCluster } from "./components/eks/eks-cluster.ts";
import { findControlPlaneLogs } from "./components/eks/eks-control-plane.ts";
import { findEksZones } from "./components/eks/eks-zones.ts";
import { GkeCluster } from "./components/gke/gke-cluster.ts";
import { findMissingPools } from "./components/gke/gke-zones.ts";
import { configOfValues, type EksConfig, type GkeConfig, withoutPools } from "./config.ts";
import type { settingsOfVariant } from "./settings/settings.ts";

type Setting<V extends "gke" | "eks", Name extends keyof (typeof settingsOfVariant)[V]> = z.input<
  (typeof settingsOfVariant)[V][Name] & z.ZodType
>;

/** The arguments of a cluster on both clouds. docs/reference/stack.md explains the settings with the same names. */
interface OwnClusterArgs<V extends "gke" | "eks"> {
  /** The name of the cluster, from which its roles and buckets have theirs; `lancedb` when absent. */
  readonly clusterName?: string;
  /** The minor version of Kubernetes, such as `1.36`; on GKE that of the release channel when absent. */
  readonly kubernetesVersion?: string;
  /** The groups of nodes; those of a default stack when absent. One pool each for `core`, `head` and `workerCpu` is required. */
  readonly nodePools?: Setting<V, "nodePools">;
  /** The ranges of addresses and the access to the Kubernetes API, or an existing network. */
  readonly network?: Setting<V, "network">;
  /** The principals that may create Ray clusters on it. */
  readonly clientPrincipals?: readonly string[];
  /** The principals that administer it, in addition to its creator. */
  readonly adminPrincipals?: readonly string[];
  /** The URI of an existing bucket for tables; a bucket of its own when absent. */
  readonly bucket?: string;
  /** An existing key for disks, buckets, the database and the secrets of Kubernetes; that of the cloud when absent. */
  readonly encryptionKey?: string;
  /** True lets Pulumi and the cloud refuse to delete the cluster, its bucket and its database. The default is true. */
  readonly deletionProtection?: boolean;
  /** True keeps buckets, databases and copies when the cluster is deleted. The default is false. */
  readonly keepData?: boolean;
  /** The number of days for which replaced or deleted objects can be restored; disabled when absent. */
  readonly objectVersionDays?: number;
  /** True prepares for `createDatabase`, which creates a PostgreSQL database in the network. The default is false. */
  readonly database?: boolean;
}

export interface GkeClusterArgs extends OwnClusterArgs<"gke"> {
  /** The release channel by which Google upgrades the cluster; `REGULAR` when absent. */
  readonly releaseChannel?: Setting<"gke", "releaseChannel">;
  /** The window in which Google upgrades the cluster; all weekend when absent. */
  readonly maintenance?: Setting<"gke", "maintenance">;
}

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
  return (await createGke(name, configOfValues("gke", settingsOf(args), providers()), options)).cluster;
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
  return (await createEks(name, configOfValues("eks", settingsOf(args), providers()), options)).cluster;
}

/** Creates the cluster of a stack. @returns It, and the configuration with the pools that the region offers. */
export async function createGke(name: string, given: GkeConfig, options?: pulumi.ComponentResourceOptions) {
  const config = withoutPools(given, await findMissingPools(given));
  return { config, cluster: new GkeCluster(name, config, options) };
}

/** Creates the cluster of a stack. @returns It, and the configuration with the pools that the region offers. */
export async function createEks(name: string, given: EksConfig, options?: pulumi.ComponentResourceOptions) {
  const [account, zones, hasLogs] = await Promise.all([
    findEksAccount(given),
    findEksZones(given),
    findControlPlaneLogs(given),
  ]);
  const missing = [...zones.pools].flatMap(([pool, its]) => (its.length === 0 ? [pool] : []));
  const config = withoutPools(given, missing);
  return { config, cluster: new EksCluster(name, { config, account, zones, hasLogs }, options) };
}

/** Returns the arguments as settings of a stack, whose other components the program creates itself. */
function settingsOf({ database = false, ...args }: GkeClusterArgs | EksClusterArgs): Readonly<Record<string, unknown>> {
  return { ...args, catalog: database ? { database: "postgres" } : {} };
}

/** Returns the settings of the clouds' providers in the program. */
function providers(): Readonly<Record<string, string>> {
  const all = Object.entries(pulumi.runtime.allConfig());
  return Object.fromEntries(all.filter(([key]) => /^(aws|gcp):/.test(key)));
}
