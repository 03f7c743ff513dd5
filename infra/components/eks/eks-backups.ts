import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { Backups } from "../../cluster.ts";
import { backupsBucket } from "../../settings/catalog-settings.ts";
import { EksBucket } from "./eks-bucket.ts";
import type { EksServicesConfig } from "./eks-services-config.ts";
import { policyOf } from "./policies.ts";
import { resourcePrefix } from "./resource-prefix.ts";

export interface EksBackupsArgs {
  readonly config: EksServicesConfig;
  readonly partition: string;
  /** The role that writes the backups. */
  readonly roleName: pulumi.Output<string>;
}

/** Creates a bucket that Ray cannot access, because a restore trusts its content. */
export function createEksBackups(
  name: string,
  { config, partition, roleName }: EksBackupsArgs,
  parent: pulumi.Resource,
): Backups {
  const adopted = backupsBucket(config.catalog);
  const prefix = `${resourcePrefix(config)}-backups`;
  const bucket = new EksBucket(name, { config, partition, prefix, adopted }, { parent });
  new aws.iam.RolePolicy(
    name,
    { role: roleName, policy: bucket.use().apply((statements) => policyOf(...statements)) },
    { parent },
  );
  return { uri: bucket.uri, region: config.region };
}
