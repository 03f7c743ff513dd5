import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import type { GkeConfig } from "../../config.ts";

export interface GkeBucketArgs {
  readonly config: Pick<GkeConfig, "region" | "deletionProtection" | "keepData" | "objectVersionDays">;
  /** The encryption key; Google's own key if undefined. */
  readonly key: pulumi.Output<string> | undefined;
  readonly project: pulumi.Input<string>;
  /** The URI of an existing bucket, with a folder if the bucket is shared. */
  readonly adopted: string | undefined;
}

/** A bucket for objects, which the stack creates, or an existing one that only receives permissions. */
export class GkeBucket extends pulumi.ComponentResource {
  /** The URI with the folder of an adopted bucket. */
  readonly uri: pulumi.Output<string>;
  readonly #bucket: pulumi.Output<string>;
  readonly #name: string;
  /** The folder of an adopted bucket with a trailing slash; empty for the whole bucket. */
  readonly #path: string = "";
  /** The managed folder for the rights on that folder. */
  readonly #folder: gcp.storage.ManagedFolder | undefined;
  /** The managed folders of parts, by name. */
  readonly #parts = new Map<string, gcp.storage.ManagedFolder>();

  constructor(name: string, args: GkeBucketArgs, options?: pulumi.ComponentResourceOptions) {
    super("tiltyard:infra:GkeBucket", name, {}, options);
    const { adopted } = args;
    this.#name = name;
    if (adopted === undefined) {
      this.#bucket = createBucket(name, args, this).name;
      this.uri = pulumi.interpolate`gs://${this.#bucket}`;
    } else {
      const [, , bucket = "", ...folders] = adopted.split("/");
      this.#bucket = pulumi.output(bucket);
      this.uri = pulumi.output(adopted);
      this.#path = folders.map((folder) => `${folder}/`).join("");
      if (folders.length > 0) this.#folder = this.#createFolder(name, this.#path);
    }
    this.registerOutputs();
  }

  /**
   * Allows an account to read, write, list and delete only the objects of this bucket or of its folder.
   *
   * @param part A folder within it, with a trailing slash; the whole when absent.
   */
  allowObjects(name: string, email: pulumi.Input<string>, parent: pulumi.Resource, part = ""): void {
    const grant = { role: "roles/storage.objectAdmin", member: pulumi.interpolate`serviceAccount:${email}` };
    const folder = part === "" ? this.#folder : this.#part(part);
    if (folder === undefined)
      new gcp.storage.BucketIAMMember(`${name}-objects`, { bucket: this.#bucket, ...grant }, { parent });
    else
      new gcp.storage.ManagedFolderIamMember(
        `${name}-objects`,
        { bucket: this.#bucket, managedFolder: folder.name, ...grant },
        { parent },
      );
  }

  #part(part: string): gcp.storage.ManagedFolder {
    const found = this.#parts.get(part);
    if (found !== undefined) return found;
    const folder = this.#createFolder(`${this.#name}-${part.slice(0, -1)}`, this.#path + part);
    this.#parts.set(part, folder);
    return folder;
  }

  #createFolder(name: string, path: string): gcp.storage.ManagedFolder {
    // Its objects remain after its deletion.
    return new gcp.storage.ManagedFolder(
      name,
      { bucket: this.#bucket, name: path, forceDestroy: true },
      { parent: this },
    );
  }
}

function createBucket(
  name: string,
  { config, project, key }: GkeBucketArgs,
  parent: pulumi.Resource,
): gcp.storage.Bucket {
  const { region, deletionProtection, keepData, objectVersionDays } = config;
  const isOld = { withState: "ARCHIVED", daysSinceNoncurrentTime: objectVersionDays ?? 0 };
  return new gcp.storage.Bucket(
    name,
    {
      project,
      location: region,
      uniformBucketLevelAccess: true,
      publicAccessPrevention: "enforced",
      forceDestroy: false,
      softDeletePolicy: { retentionDurationSeconds: 7 * 24 * 60 * 60 },
      ...(key !== undefined && { encryption: { defaultKmsKeyName: key } }),
      versioning: { enabled: objectVersionDays !== undefined },
      lifecycleRules: [
        { action: { type: "AbortIncompleteMultipartUpload" }, condition: { age: 7 } },
        ...(objectVersionDays === undefined ? [] : [{ action: { type: "Delete" }, condition: isOld }]),
      ],
    },
    { parent, protect: deletionProtection, retainOnDelete: keepData },
  );
}
