import * as aws from "@pulumi/aws";
import type * as pulumi from "@pulumi/pulumi";
import type { EksAccount } from "./eks-account.ts";
import type { Statement } from "./policies.ts";

/** The key is used by S3 alone, for principals that may read and write the objects. */
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

/** What the driver of volumes does with the key: it lets EC2 use it for the disks that it makes. */
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
 * Lets the service that starts nodes encrypt their disks. Without it nodes end as soon as they start.
 *
 * @returns What must be there as long as nodes are.
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
