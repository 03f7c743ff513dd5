import type * as pulumi from "@pulumi/pulumi";
import { catalogLabels, catalogName } from "@tiltyard/platform";
import type { Cluster, Database } from "../../cluster.ts";
import type { CatalogSettings } from "../../settings/catalog-settings.ts";
import type { MonitoringSettings } from "../../settings/monitoring-settings.ts";
import type { PlatformParts } from "../ray/ray-platform.ts";

/** The settings of a catalog, with its database in place of the setting that asks for one. */
export interface CatalogOptions extends Omit<CatalogSettings, "database"> {
  readonly database: "sqlite" | Database;
}

/** The parts of a stack that a catalog is deployed with. */
export interface CatalogDeps {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly platform: PlatformParts;
  readonly settings: CatalogOptions;
  /** The names of the runner's Ray clusters; undefined without a runner. */
  readonly rayClusters: readonly string[] | undefined;
  readonly monitoring: MonitoringSettings;
  readonly deletionProtection: boolean;
}

export type Child = pulumi.CustomResourceOptions & { readonly parent: pulumi.Resource };

/** The service without an address that a stateful set requires for the names of its pods. */
export const podsServiceName = `${catalogName}-pods`;

export function metadataOf({ namespace }: CatalogDeps) {
  return { name: catalogName, namespace, labels: catalogLabels };
}
