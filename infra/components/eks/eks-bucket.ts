import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { EksConfig } from "../../config.ts";
import { useKeyInS3 } from "./eks-encryption.ts";
import { type Statement, useBucket } from "./policies.ts";

export interface EksBucketArgs {
  readonly config: Pick<
    EksConfig,
    "region" | "deletionProtection" | "keepData" | "objectVersionDays" | "encryptionKey"
  >;
  readonly partition: string;
  /** The prefix of the name of a new bucket. */
  readonly prefix: string;
  /** The URI of an existing bucket, with a folder if the bucket is shared. */
  readonly adopted: string | undefined;
}

/** A bucket for objects, which the stack creates or adopts. */
export class EksBucket extends pulumi.ComponentResource {
  readonly arn: pulumi.Output<string>;
  /** The URI with the folder of an adopted bucket. */
  readonly uri: pulumi.Output<string>;
  /** The folder of an adopted bucket with a trailing slash; empty for the whole bucket. */
  readonly #folder: string;
  readonly #config: EksBucketArgs["config"];

  constructor(name: string, args: EksBucketArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:EksBucket", name, {}, options);
    const { adopted, partition } = args;
    this.#config = args.config;
    if (adopted !== undefined) {
      const [, , bucketName, ...folders] = adopted.split("/");
      this.arn = pulumi.output(`arn:${partition}:s3:::${bucketName}`);
      this.uri = pulumi.output(adopted);
      this.#folder = folders.map((folder) => `${folder}/`).join("");
    } else {
      const bucket = createBucket(name, args, this);
      this.arn = bucket.arn;
      this.uri = pulumi.interpolate`s3://${bucket.bucket}`;
      this.#folder = "";
    }
    this.registerOutputs();
  }

  /** Returns the rights of users on the bucket or on one folder, which has a trailing slash. */
  use(folder = ""): pulumi.Output<readonly Statement[]> {
    const { region, encryptionKey } = this.#config;
    const key = encryptionKey === undefined ? [] : [useKeyInS3(encryptionKey, region)];
    return this.arn.apply((arn) => [...useBucket(arn, this.#folder + folder), ...key]);
  }
}

function createBucket(name: string, { config, prefix }: EksBucketArgs, parent: pulumi.Resource): aws.s3.Bucket {
  const { deletionProtection, keepData, objectVersionDays, encryptionKey } = config;
  // The protections of a bucket are retained together with it.
  const kept = { parent, retainOnDelete: keepData };
  const bucket = new aws.s3.Bucket(
    name,
    { bucketPrefix: `${prefix.slice(0, 36)}-`, forceDestroy: false },
    { ...kept, protect: deletionProtection },
  );
  const of = { bucket: bucket.id };
  new aws.s3.BucketPublicAccessBlock(
    name,
    { ...of, blockPublicAcls: true, blockPublicPolicy: true, ignorePublicAcls: true, restrictPublicBuckets: true },
    kept,
  );
  new aws.s3.BucketServerSideEncryptionConfiguration(
    name,
    {
      ...of,
      rules: [
        encryptionKey === undefined
          ? { applyServerSideEncryptionByDefault: { sseAlgorithm: "AES256" } }
          : {
              applyServerSideEncryptionByDefault: { sseAlgorithm: "aws:kms", kmsMasterKeyId: encryptionKey },
              // Without a bucket key, each object causes a call of KMS, which is limited and charged.
              bucketKeyEnabled: true,
            },
      ],
    },
    kept,
  );
  new aws.s3.BucketOwnershipControls(name, { ...of, rule: { objectOwnership: "BucketOwnerEnforced" } }, kept);
  // Versioning can be suspended but never disabled again.
  const versioning =
    objectVersionDays === undefined
      ? []
      : [new aws.s3.BucketVersioning(name, { ...of, versioningConfiguration: { status: "Enabled" } }, kept)];
  new aws.s3.BucketLifecycleConfiguration(
    name,
    {
      ...of,
      rules: [
        ...(objectVersionDays === undefined
          ? []
          : [
              {
                id: "versions-that-are-old",
                status: "Enabled",
                filter: { prefix: "" },
                noncurrentVersionExpiration: { noncurrentDays: objectVersionDays },
                expiration: { expiredObjectDeleteMarker: true },
              },
            ]),
        {
          id: "uploads-that-broke-off",
          status: "Enabled",
          filter: { prefix: "" },
          abortIncompleteMultipartUpload: { daysAfterInitiation: 7 },
        },
      ],
    },
    { ...kept, dependsOn: versioning },
  );
  new aws.s3.BucketPolicy(name, { ...of, policy: bucket.arn.apply(onlyEncryptedRequests) }, kept);
  return bucket;
}

function onlyEncryptedRequests(bucketArn: string): string {
  return JSON.stringify({
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Deny",
        Principal: "*",
        Action: "s3:*",
        Resource: [bucketArn, `${bucketArn}/*`],
        Condition: { Bool: { "aws:SecureTransport": "false" } },
      },
    ],
  });
}
