import * as pulumi from "@pulumi/pulumi";
import { parsing } from "@tiltyard/protocol";
import type { Backups, CloudServices, IdentityArgs, PodIdentity } from "../cluster.ts";
import { bucketOf } from "../settings/setting-types.ts";

export interface OwnServicesArgs {
  /** The location of the tables: `s3://...`, `gs://...` or `file:///...`. */
  readonly bucket: pulumi.Input<string>;
  /** The destination of Litestream's copies of the catalog's database, if enabled: a bucket that Ray cannot access. */
  readonly backups?: pulumi.Input<string> | undefined;
  /** The annotations that the identity mechanism of the cluster requires, such as `eks.amazonaws.com/role-arn`. */
  readonly serviceAccountAnnotations?: pulumi.Input<Readonly<Record<string, pulumi.Input<string>>>>;
}

const Bucket = bucketOf("s3", "gs", "file");

/** The services of a cluster that its operator provides. The stack creates nothing. */
export class OwnServices implements CloudServices {
  readonly bucketUri: pulumi.Output<string>;
  readonly podEnvironment = {};
  readonly loadBalancerRanges = {};
  readonly hasGkeGateways = false;
  readonly #args: OwnServicesArgs;

  /** @throws RunError for a bucket that is no URI, at once or when its output is known. */
  constructor(args: OwnServicesArgs) {
    const { bucket } = args;
    this.bucketUri = typeof bucket === "string" ? pulumi.output(checked(bucket)) : pulumi.output(bucket).apply(checked);
    this.#args = args;
  }

  createIdentity(_name: string, { annotations }: IdentityArgs): PodIdentity {
    const given = pulumi.output(annotations ?? this.#args.serviceAccountAnnotations ?? {});
    return { annotations: given.apply((all) => ({ ...all })), principal: pulumi.output("") };
  }

  createVendingRole(): undefined {}

  createBackups(): Backups {
    return { uri: pulumi.output(this.#args.backups ?? ""), region: undefined };
  }

  createImageRepository(): undefined {}

  cachedImage(image: string): string {
    return image;
  }
}

function checked(bucket: string): string {
  const { data, error } = Bucket.safeParse(bucket, parsing);
  if (data === undefined) throw new pulumi.RunError(`bucket: ${error.issues[0]?.message}, not ${bucket}`);
  return data;
}
