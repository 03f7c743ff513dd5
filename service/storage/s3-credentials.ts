import { S3Client } from "@aws-sdk/client-s3";
import { AssumeRoleCommand, PackedPolicyTooLargeException, STSClient } from "@aws-sdk/client-sts";
import { CatalogError } from "@tiltyard/protocol";
import { type CredentialRequest, type CredentialVendor, noCredentials } from "./credential-vendor.ts";

/** The maximum lifetime that AWS allows for role chaining. The catalog's own credentials often belong to a role. */
const lifetimeSeconds = 3600;
/** The maximum length of a session policy, which AWS compresses further. */
const policyLengthMax = 2048;
const sessionNameLengthMax = 64;

/**
 * Vends sessions of a role, each restricted to one folder by a session policy. Credentials, region and endpoint are
 * those of AWS's default provider chain.
 *
 * @param RoleArn A role with access to every table, which bounds the rights of its sessions.
 */
export function createS3Vendor(RoleArn: string): CredentialVendor {
  const sts = new STSClient();
  const { region } = new S3Client().config;

  return async (request) => {
    const Policy = sessionPolicy(request, RoleArn.split(":")[1] ?? "aws");
    if (Policy.length > policyLengthMax) throw tooLong();
    try {
      const { Credentials } = await sts.send(
        new AssumeRoleCommand({
          RoleArn,
          RoleSessionName: sessionName(request.principal),
          DurationSeconds: lifetimeSeconds,
          Policy,
        }),
      );
      if (Credentials?.Expiration === undefined) throw new Error("STS returned no credentials with an expiry");
      const { AccessKeyId = "", SecretAccessKey = "", SessionToken = "", Expiration } = Credentials;
      return {
        aws_access_key_id: AccessKeyId,
        aws_secret_access_key: SecretAccessKey,
        aws_session_token: SessionToken,
        aws_region: await region(),
        expires_at_millis: String(Expiration.getTime()),
      };
    } catch (error) {
      throw error instanceof PackedPolicyTooLargeException ? tooLong() : noCredentials(request, error);
    }
  };
}

function tooLong(): CatalogError {
  return new CatalogError(
    "InvalidInput",
    "location: is too long for credentials of one table. Send vend_credentials: false",
  );
}

/**
 * Returns the policy of a session that may list and use the objects of one folder. KMS keys can be used only through S3
 * and thus only for the objects of the folder; the role restricts the keys.
 *
 * @param partition `aws`, or another partition such as `aws-cn`.
 * @returns A policy document as JSON in ASCII.
 */
export function sessionPolicy({ location, access }: Omit<CredentialRequest, "principal">, partition: string): string {
  const bucket = `arn:${partition}:s3:::${location.bucket}`;
  const folder = `${escapeWildcards(location.path)}/*`;
  const writes = access === "write";
  const policy = {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Action: [
          "s3:GetObject",
          ...(writes
            ? ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
            : []),
        ],
        Resource: `${bucket}/${folder}`,
      },
      {
        Effect: "Allow",
        Action: "s3:ListBucket",
        Resource: bucket,
        Condition: { StringLike: { "s3:prefix": folder } },
      },
      {
        Effect: "Allow",
        Action: ["kms:Decrypt", ...(writes ? ["kms:GenerateDataKey"] : [])],
        Resource: "*",
        Condition: { StringLike: { "kms:ViaService": "s3.*.amazonaws.com*" } },
      },
    ],
  };
  return JSON.stringify(policy).replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Escapes the characters of a path that have a meaning in the patterns of AWS. */
function escapeWildcards(path: string): string {
  return path.replace(/[*?$]/g, (character) => `\${${character}}`);
}

/** Returns the session name for CloudTrail, which is the principal in the characters that AWS allows. */
function sessionName(principal: string): string {
  return `tiltyard-${principal.replace(/[^\w+=,.@-]/g, "_")}`.slice(0, sessionNameLengthMax);
}
