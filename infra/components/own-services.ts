import * as pulumi from "@pulumi/pulumi";
import type { Backups, CloudServices, IdentityArgs, PodIdentity } from "../cluster.ts";

export interface OwnServicesArgs {
  /** The location of the tables: `s3://...`, `gs://...` or `file:///...`. */
  readonly bucket: string;
  /** The destination of Litestream's copies of the catalog's database, if enabled: a bucket that Ray cannot access. */
  readonly backups?: string | undefined;
  /** The annotations that the identity mechanism of the cluster requires. */
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
}

/** The services of a cluster that its operator provides. The stack creates nothing. */
export class OwnServices implements CloudServices {
  readonly bucketUri: pulumi.Output<string>;
  readonly podEnvironment = {};
  readonly loadBalancerRanges = {};
  readonly hasGkeGateways = false;
  readonly #args: OwnServicesArgs;

  constructor(args: OwnServicesArgs) {
    this.bucketUri = pulumi.output(args.bucket);
    this.#args = args;
  }

  createIdentity(_name: string, { annotations = this.#args.serviceAccountAnnotations }: IdentityArgs): PodIdentity {
    return { annotations: pulumi.output({ ...annotations }), principal: pulumi.output("") };
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
