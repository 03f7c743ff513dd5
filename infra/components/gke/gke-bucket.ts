import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { StackConfig } from "../../config.ts";

/** The bucket with the tables: made by the stack, or one that is there and only gets its permissions. */
export class GkeBucket extends pulumi.ComponentResource {
  /** With the folder of an adopted bucket. */
  readonly uri: pulumi.Output<string>;
  readonly #name: pulumi.Output<string>;

  constructor(name: string, config: StackConfig, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:GkeBucket", name, {}, options);
    if (config.bucket !== undefined) {
      this.uri = pulumi.output(config.bucket);
      this.#name = pulumi.output(config.bucket.split("/")[2] ?? "");
    } else {
      this.#name = createBucket(this, name, config).name;
      this.uri = pulumi.interpolate`gs://${this.#name}`;
    }
    this.registerOutputs();
  }

  /** Lets an account read, write, list and delete objects of this bucket, and of no other. */
  allowObjects(name: string, account: gcp.serviceaccount.Account, parent: pulumi.Resource): void {
    new gcp.storage.BucketIAMMember(
      `${name}-objects`,
      {
        bucket: this.#name,
        role: "roles/storage.objectAdmin",
        member: pulumi.interpolate`serviceAccount:${account.email}`,
      },
      { parent },
    );
  }
}

function createBucket(parent: pulumi.Resource, name: string, config: StackConfig): gcp.storage.Bucket {
  return new gcp.storage.Bucket(
    name,
    {
      location: config.region,
      uniformBucketLevelAccess: true,
      publicAccessPrevention: "enforced",
      forceDestroy: false,
      softDeletePolicy: { retentionDurationSeconds: 7 * 24 * 60 * 60 },
      lifecycleRules: [{ action: { type: "AbortIncompleteMultipartUpload" }, condition: { age: 7 } }],
    },
    { parent, protect: config.deletionProtection },
  );
}
