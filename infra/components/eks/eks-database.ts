import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import type { StackConfig } from "../../config.ts";
import { versions } from "../../versions.ts";
import type { Vpc } from "./vpc.ts";

const port = 5432;

/**
 * An RDS instance in the private subnets, which the cluster's nodes alone can reach.
 *
 * @returns Its URL, a secret.
 */
export function createRds(
  name: string,
  config: StackConfig,
  vpc: Vpc,
  args: {
    readonly replicas: number;
    readonly clusterSecurityGroupId: pulumi.Output<string>;
    readonly parent: pulumi.Resource;
  },
): pulumi.Output<string> {
  const { parent } = args;
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
      referencedSecurityGroupId: args.clusterSecurityGroupId,
      ipProtocol: "tcp",
      fromPort: port,
      toPort: port,
    },
    { parent },
  );
  const password = new random.RandomPassword(`${name}-password`, { length: 40, special: false }, { parent });
  const instance = new aws.rds.Instance(
    name,
    {
      engine: "postgres",
      engineVersion: versions.postgres,
      instanceClass: "db.t4g.medium",
      allocatedStorage: 20,
      maxAllocatedStorage: 200,
      storageType: "gp3",
      storageEncrypted: true,
      multiAz: args.replicas > 1,
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
      skipFinalSnapshot: !config.deletionProtection,
      finalSnapshotIdentifier: `${config.clusterName}-catalog-final`,
    },
    { parent, protect: config.deletionProtection },
  );
  return pulumi.secret(
    pulumi.interpolate`postgres://tiltyard:${password.result}@${instance.address}:${port}/tiltyard?sslmode=require`,
  );
}
