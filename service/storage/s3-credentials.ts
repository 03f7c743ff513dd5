import { S3Client } from "@aws-sdk/client-s3";
import { AssumeRoleCommand, PackedPolicyTooLargeException, STSClient } from "@aws-sdk/client-sts";
import { CatalogError } from "@tiltyard/protocol";
import { type CredentialRequest, type CredentialVendor, noCredentials } from "./credential-vendor.ts";

/** The longest that AWS allows a role that is assumed by another role, as the catalog's own credentials often are. */
const lifetimeSeconds = 3600;
/** AWS takes session policies of this length, and packs them further. */
const policyLengthMax = 2048;
const sessionNameLengthMax = 64;

/**
 * Hands out sessions of a role, each limited to one folder by a policy of its own. Credentials, region
 * and endpoint come from where AWS's tools look for them.
 *
 * @param RoleArn A role that may use every table; a session can do no more than that.
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
      if (Credentials?.Expiration === undefined) throw new Error("STS answered without credentials that expire");
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
    "location: is too long for credentials that reach nothing else; ask with vend_credentials false",
  );
}

/**
 * What a session may do: use the objects of one folder, and list them. Keys of KMS are used through S3
 * alone, so for objects that the session may use; which keys, the role says.
 *
 * @param partition `aws`, or that of another AWS such as `aws-cn`.
 * @returns A policy document as JSON, in ASCII, which is all that AWS takes for sure.
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

/** Escapes the characters of a path that have a meaning in AWS's patterns. */
function escapeWildcards(path: string): string {
  return path.replace(/[*?$]/g, (character) => `\${${character}}`);
}

/** The session's name in AWS's log: the principal, in the letters that AWS allows. */
function sessionName(principal: string): string {
  return `tiltyard-${principal.replace(/[^\w+=,.@-]/g, "_")}`.slice(0, sessionNameLengthMax);
}
