import * as pulumi from "@pulumi/pulumi";
import type { Backups, CloudServices, IdentityArgs, PodIdentity } from "../cluster.ts";

export interface OwnServicesArgs {
  /** Where the tables are: `s3://...`, `gs://...` or `file:///...`. */
  readonly bucket: string;
  /** Where Litestream copies the catalog's database to, if it does: a bucket that Ray cannot use. */
  readonly backups?: string | undefined;
  /** What the cluster's own way of giving pods an identity asks for. */
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
}

/** What a cluster has from its operator: nothing is made. */
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
