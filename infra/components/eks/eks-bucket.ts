import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import type { StackConfig } from "../../config.ts";

/** The bucket with the tables: made by the stack, or one that is there. */
export class EksBucket extends pulumi.ComponentResource {
  readonly arn: pulumi.Output<string>;
  /** With the folder of an adopted bucket. */
  readonly uri: pulumi.Output<string>;
  /** The folder of an adopted bucket, ending in a slash; or empty. */
  readonly prefix: string;

  constructor(name: string, config: StackConfig, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:EksBucket", name, {}, options);
    if (config.bucket !== undefined) {
      const [, , bucketName, ...folders] = config.bucket.split("/");
      this.arn = pulumi.output(`arn:aws:s3:::${bucketName}`);
      this.uri = pulumi.output(config.bucket);
      this.prefix = folders.map((folder) => `${folder}/`).join("");
    } else {
      const bucket = createBucket(this, name, config);
      this.arn = bucket.arn;
      this.uri = pulumi.interpolate`s3://${bucket.bucket}`;
      this.prefix = "";
    }
    this.registerOutputs();
  }
}

function createBucket(parent: pulumi.Resource, name: string, config: StackConfig): aws.s3.Bucket {
  const bucket = new aws.s3.Bucket(
    name,
    { bucketPrefix: `${config.clusterName.slice(0, 30)}-`, forceDestroy: false },
    { parent, protect: config.deletionProtection },
  );
  const of = { bucket: bucket.id };
  new aws.s3.BucketPublicAccessBlock(
    name,
    { ...of, blockPublicAcls: true, blockPublicPolicy: true, ignorePublicAcls: true, restrictPublicBuckets: true },
    { parent },
  );
  new aws.s3.BucketServerSideEncryptionConfiguration(
    name,
    { ...of, rules: [{ applyServerSideEncryptionByDefault: { sseAlgorithm: "AES256" } }] },
    { parent },
  );
  new aws.s3.BucketOwnershipControls(name, { ...of, rule: { objectOwnership: "BucketOwnerEnforced" } }, { parent });
  new aws.s3.BucketLifecycleConfiguration(
    name,
    {
      ...of,
      rules: [
        {
          id: "uploads-that-broke-off",
          status: "Enabled",
          filter: { prefix: "" },
          abortIncompleteMultipartUpload: { daysAfterInitiation: 7 },
        },
      ],
    },
    { parent },
  );
  new aws.s3.BucketPolicy(
    name,
    {
      ...of,
      policy: bucket.arn.apply((arn) =>
        JSON.stringify({
          Version: "2012-10-17",
          Statement: [
            {
              Effect: "Deny",
              Principal: "*",
              Action: "s3:*",
              Resource: [arn, `${arn}/*`],
              Condition: { Bool: { "aws:SecureTransport": "false" } },
            },
          ],
        }),
      ),
    },
    { parent },
  );
  return bucket;
}
