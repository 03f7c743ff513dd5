import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { Database } from "../../cluster.ts";
import type { GkeConfig } from "../../config.ts";
import type { GkeNetwork } from "./gke-network.ts";

export interface CloudSqlArgs {
  readonly config: GkeConfig;
  readonly project: pulumi.Output<string>;
  readonly network: GkeNetwork;
  readonly replicas: number;
  /** The encryption key; Google's own key if undefined. */
  readonly key: pulumi.Output<string> | undefined;
}

/** The number of days for which Google keeps the final backup of a deleted instance. */
const finalBackupDays = 30;

/** Creates a Cloud SQL instance with an address only inside the cluster's network. */
export function createCloudSql(
  name: string,
  { config, project, network: { network }, replicas, key }: CloudSqlArgs,
  parent: pulumi.Resource,
): Database {
  const range = new gcp.compute.GlobalAddress(
    `${name}-range`,
    { project, purpose: "VPC_PEERING", addressType: "INTERNAL", prefixLength: 20, network },
    { parent },
  );
  const peering = new gcp.servicenetworking.Connection(
    `${name}-peering`,
    {
      network,
      service: "servicenetworking.googleapis.com",
      reservedPeeringRanges: [range.name],
      // For days after the deletion of the last instance, Google refuses to delete a peering.
      deletionPolicy: "ABANDON",
    },
    { parent },
  );
  const instance = new gcp.sql.DatabaseInstance(
    name,
    {
      project,
      databaseVersion: `POSTGRES_${config.catalog.postgresVersion}`,
      region: config.region,
      deletionProtection: config.deletionProtection,
      ...(key !== undefined && { encryptionKeyName: key }),
      settings: {
        // The provider does not label instances by default.
        ...(Object.keys(config.tags).length > 0 && { userLabels: config.tags }),
        edition: "ENTERPRISE",
        tier: "db-custom-2-7680",
        availabilityType: replicas > 1 ? "REGIONAL" : "ZONAL",
        deletionProtectionEnabled: config.deletionProtection,
        diskAutoresize: true,
        backupConfiguration: { enabled: true, pointInTimeRecoveryEnabled: true },
        finalBackupConfig: { enabled: true, retentionDays: finalBackupDays },
        ipConfiguration: { ipv4Enabled: false, privateNetwork: network, sslMode: "ENCRYPTED_ONLY" },
      },
    },
    { parent, dependsOn: [peering], protect: config.deletionProtection },
  );
  // The database and the user are deleted with the instance. PostgreSQL refuses to drop a user that owns objects or a
  // database in use.
  const ofInstance = { project, instance: instance.name, deletionPolicy: "ABANDON" };
  const database = new gcp.sql.Database(`${name}-tiltyard`, { name: "tiltyard", ...ofInstance }, { parent });
  const password = new random.RandomPassword(`${name}-password`, { length: 40, special: false }, { parent });
  const user = new gcp.sql.User(
    `${name}-user`,
    { name: "tiltyard", password: password.result, ...ofInstance },
    { parent },
  );
  const url = pulumi.secret(
    pulumi.interpolate`postgres://${user.name}:${password.result}@${instance.privateIpAddress}:5432/${database.name}?sslmode=require`,
  );
  return { url, finalSnapshot: undefined };
}
