import * as pulumi from "@pulumi/pulumi";
import type { z } from "zod";
import { configOfValues } from "./config.ts";
import type { settingsOfVariant } from "./settings/settings.ts";

/** The type of a stack's setting in a program. */
export type Setting<V extends "gke" | "eks", Name extends keyof (typeof settingsOfVariant)[V]> = z.input<
  (typeof settingsOfVariant)[V][Name] & z.ZodType
>;

/** The arguments of a cluster on both clouds. docs/reference/stack.md explains the settings with the same names. */
export interface OwnClusterArgs<V extends "gke" | "eks"> {
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

/** Returns the arguments as the configuration of a stack, whose other components the program creates itself. */
export function configOfArgs<V extends "gke" | "eks">(variant: V, { database = false, ...args }: OwnClusterArgs<V>) {
  const providers = Object.entries(pulumi.runtime.allConfig()).filter(([key]) => /^(aws|gcp):/.test(key));
  const settings = { ...args, catalog: database ? { database: "postgres" } : {} };
  return configOfValues(variant, settings, Object.fromEntries(providers));
}
