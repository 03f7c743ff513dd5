import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { GkeConfig } from "../../config.ts";

export interface GkeBucketArgs {
  readonly config: Pick<GkeConfig, "region" | "deletionProtection" | "keepData">;
  readonly project: pulumi.Input<string>;
  /** The URI of a bucket that is there already, with a folder if it is one of several. */
  readonly adopted: string | undefined;
}

/** A bucket for objects: made by the stack, or one that is there and only gets its permissions. */
export class GkeBucket extends pulumi.ComponentResource {
  /** With the folder of an adopted bucket. */
  readonly uri: pulumi.Output<string>;
  readonly #bucket: pulumi.Output<string>;
  /** The folder of an adopted bucket as something that rights can be given on. */
  readonly #folder: gcp.storage.ManagedFolder | undefined;

  constructor(name: string, args: GkeBucketArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:GkeBucket", name, {}, options);
    const { adopted } = args;
    if (adopted === undefined) {
      this.#bucket = createBucket(name, args, this).name;
      this.uri = pulumi.interpolate`gs://${this.#bucket}`;
    } else {
      const [, , bucket = "", ...folders] = adopted.split("/");
      this.#bucket = pulumi.output(bucket);
      this.uri = pulumi.output(adopted);
      if (folders.length > 0)
        this.#folder = new gcp.storage.ManagedFolder(
          name,
          // Its objects stay when it goes.
          { bucket, name: folders.map((folder) => `${folder}/`).join(""), forceDestroy: true },
          { parent: this },
        );
    }
    this.registerOutputs();
  }

  /** Lets an account read, write, list and delete objects of this bucket or of its folder, and of no other. */
  allowObjects(name: string, email: pulumi.Input<string>, parent: pulumi.Resource): void {
    const grant = { role: "roles/storage.objectAdmin", member: pulumi.interpolate`serviceAccount:${email}` };
    if (this.#folder === undefined)
      new gcp.storage.BucketIAMMember(`${name}-objects`, { bucket: this.#bucket, ...grant }, { parent });
    else
      new gcp.storage.ManagedFolderIamMember(
        `${name}-objects`,
        { bucket: this.#bucket, managedFolder: this.#folder.name, ...grant },
        { parent },
      );
  }
}

function createBucket(name: string, { config, project }: GkeBucketArgs, parent: pulumi.Resource): gcp.storage.Bucket {
  const { region, deletionProtection, keepData } = config;
  return new gcp.storage.Bucket(
    name,
    {
      project,
      location: region,
      uniformBucketLevelAccess: true,
      publicAccessPrevention: "enforced",
      forceDestroy: false,
      softDeletePolicy: { retentionDurationSeconds: 7 * 24 * 60 * 60 },
      lifecycleRules: [{ action: { type: "AbortIncompleteMultipartUpload" }, condition: { age: 7 } }],
    },
    { parent, protect: deletionProtection, retainOnDelete: keepData },
  );
}
