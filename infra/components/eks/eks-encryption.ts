import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { EksAccount } from "./eks-account.ts";
import type { Statement } from "./policies.ts";

/** Allows principals that may read and write objects to use the key, but only through S3. */
export function useKeyInS3(keyArn: string, region: string): Statement {
  return {
    Effect: "Allow",
    Action: ["kms:Decrypt", "kms:GenerateDataKey"],
    Resource: keyArn,
    Condition: { StringLike: { "kms:ViaService": `s3.${region}.amazonaws.com*` } },
  };
}

const diskOperations = [
  ...["Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext"],
  "DescribeKey",
];

/** Allows the driver of volumes to let EC2 use the key for new disks. */
export function useKeyForDisks(keyArn: string): readonly Statement[] {
  return [
    { Effect: "Allow", Action: diskOperations.map((operation) => `kms:${operation}`), Resource: keyArn },
    {
      Effect: "Allow",
      Action: ["kms:CreateGrant"],
      Resource: keyArn,
      Condition: { Bool: { "kms:GrantIsForAWSResource": "true" } },
    },
  ];
}

/**
 * Allows the service that starts nodes to encrypt their disks. Without this grant, nodes terminate immediately after
 * their start.
 *
 * @returns The resources that must exist as long as the nodes.
 */
export function grantKeyToNodes(
  name: string,
  { encryptionKey, account }: { readonly encryptionKey: string | undefined; readonly account: EksAccount },
  parent: pulumi.Resource,
): pulumi.Resource[] {
  if (encryptionKey === undefined) return [];
  const { partition, id } = account;
  const service = "autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling";
  return [
    new aws.kms.Grant(
      name,
      {
        keyId: encryptionKey,
        granteePrincipal: `arn:${partition}:iam::${id}:role/aws-service-role/${service}`,
        operations: [...diskOperations, "CreateGrant"],
      },
      { parent },
    ),
  ];
}
