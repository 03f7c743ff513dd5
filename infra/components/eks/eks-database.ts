import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { Database } from "../../cluster.ts";
import type { EksConfig } from "../../config.ts";
import type { EksNetwork } from "./eks-network.ts";

const port = 5432;

export interface RdsArgs {
  readonly config: EksConfig;
  readonly vpc: EksNetwork;
  readonly replicas: number;
  readonly clusterSecurityGroupId: pulumi.Output<string>;
}

/** Creates an RDS instance in the private subnets, which only the nodes of the cluster can reach. */
export function createRds(
  name: string,
  { config, vpc, replicas, clusterSecurityGroupId }: RdsArgs,
  parent: pulumi.Resource,
): Database {
  const subnets = new aws.rds.SubnetGroup(name, { subnetIds: [...vpc.privateSubnetIds] }, { parent });
  const security = new aws.ec2.SecurityGroup(
    name,
    { vpcId: vpc.id, description: "PostgreSQL of the Tiltyard catalog" },
    { parent },
  );
  new aws.vpc.SecurityGroupIngressRule(
    name,
    {
      securityGroupId: security.id,
      referencedSecurityGroupId: clusterSecurityGroupId,
      ipProtocol: "tcp",
      fromPort: port,
      toPort: port,
    },
    { parent },
  );
  const password = new random.RandomPassword(`${name}-password`, { length: 40, special: false }, { parent });
  // The suffix avoids a conflict with the snapshot of an earlier stack, which would block the deletion.
  const suffix = new random.RandomId(`${name}-final`, { byteLength: 4 }, { parent });
  const finalSnapshot = pulumi.interpolate`${config.clusterName}-catalog-${suffix.hex}`;
  const instance = new aws.rds.Instance(
    name,
    {
      engine: "postgres",
      // A stack gets another major version with its next `up`, and not in the maintenance window after it.
      engineVersion: config.catalog.postgresVersion,
      allowMajorVersionUpgrade: true,
      applyImmediately: true,
      instanceClass: "db.t4g.medium",
      allocatedStorage: 20,
      maxAllocatedStorage: 200,
      storageType: "gp3",
      storageEncrypted: true,
      ...(config.encryptionKey !== undefined && { kmsKeyId: config.encryptionKey }),
      multiAz: replicas > 1,
      dbName: "tiltyard",
      username: "tiltyard",
      password: password.result,
      dbSubnetGroupName: subnets.name,
      vpcSecurityGroupIds: [security.id],
      publiclyAccessible: false,
      backupRetentionPeriod: 7,
      copyTagsToSnapshot: true,
      autoMinorVersionUpgrade: true,
      deletionProtection: config.deletionProtection,
      skipFinalSnapshot: false,
      finalSnapshotIdentifier: finalSnapshot,
    },
    { parent, protect: config.deletionProtection },
  );
  const url = pulumi.secret(
    pulumi.interpolate`postgres://tiltyard:${password.result}@${instance.address}:${port}/tiltyard?sslmode=require`,
  );
  return { url, finalSnapshot };
}
