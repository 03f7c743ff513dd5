import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { StackConfig } from "../../config.ts";
import { versions } from "../../versions.ts";
import type { GkeNetwork } from "./gke-network.ts";

/**
 * A Cloud SQL instance with an address inside the cluster's network only.
 *
 * @returns Its URL, a secret.
 */
export function createCloudSql(
  name: string,
  config: StackConfig,
  { network }: GkeNetwork,
  { replicas, parent }: { readonly replicas: number; readonly parent: pulumi.Resource },
): pulumi.Output<string> {
  const range = new gcp.compute.GlobalAddress(
    `${name}-range`,
    { purpose: "VPC_PEERING", addressType: "INTERNAL", prefixLength: 20, network: network.id },
    { parent },
  );
  const peering = new gcp.servicenetworking.Connection(
    `${name}-peering`,
    {
      network: network.id,
      service: "servicenetworking.googleapis.com",
      reservedPeeringRanges: [range.name],
      // Google refuses to end a peering for days after the last instance is gone.
      deletionPolicy: "ABANDON",
    },
    { parent },
  );
  const instance = new gcp.sql.DatabaseInstance(
    name,
    {
      databaseVersion: `POSTGRES_${versions.postgres}`,
      region: config.region,
      deletionProtection: config.deletionProtection,
      settings: {
        edition: "ENTERPRISE",
        tier: "db-custom-2-7680",
        availabilityType: replicas > 1 ? "REGIONAL" : "ZONAL",
        deletionProtectionEnabled: config.deletionProtection,
        diskAutoresize: true,
        backupConfiguration: { enabled: true, pointInTimeRecoveryEnabled: true },
        ipConfiguration: { ipv4Enabled: false, privateNetwork: network.id, sslMode: "ENCRYPTED_ONLY" },
      },
    },
    { parent, dependsOn: [peering], protect: config.deletionProtection },
  );
  const database = new gcp.sql.Database(`${name}-tiltyard`, { name: "tiltyard", instance: instance.name }, { parent });
  const password = new random.RandomPassword(`${name}-password`, { length: 40, special: false }, { parent });
  const user = new gcp.sql.User(
    `${name}-user`,
    { name: "tiltyard", instance: instance.name, password: password.result },
    { parent },
  );
  return pulumi.secret(
    pulumi.interpolate`postgres://${user.name}:${password.result}@${instance.privateIpAddress}:5432/${database.name}?sslmode=require`,
  );
}
