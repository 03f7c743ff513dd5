import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import { identityAnnotations } from "@tiltyard/platform";
import type { Backups, CloudServices, IdentityArgs, ImageRepository, PodIdentity } from "../../cluster.ts";
import type { GkeConfig } from "../../config.ts";
import { backupsBucket } from "../../settings/catalog-settings.ts";
import { type AccountDeps, createAccount } from "./gke-accounts.ts";
import { GkeBucket } from "./gke-bucket.ts";
import { createGkeImageCache } from "./gke-image-cache.ts";
import { createGkeImages } from "./gke-images.ts";

/** The settings of Google's services for a cluster, whether or not the stack created it. */
export type GkeCloudConfig = Pick<
  GkeConfig,
  | "clusterName"
  | "region"
  | "project"
  | "bucket"
  | "deletionProtection"
  | "keepData"
  | "objectVersionDays"
  | "imageCache"
  | "registrySignIn"
> & { readonly catalog: Pick<GkeConfig["catalog"], "litestream"> };

export interface GkeServicesArgs extends AccountDeps {
  readonly config: GkeCloudConfig;
  /** The pool `PROJECT.svc.id.goog`, which is known when it exists: the first cluster of a project creates it. */
  readonly identityPool: pulumi.Output<string>;
  /** The key of buckets; Google's own key if undefined. */
  readonly key: pulumi.Output<string> | undefined;
  /**
   * The accounts of nodes that receive the right to pull images on the stack's registry. All others have it on the
   * project.
   */
  readonly nodeEmails?: readonly string[];
  /** The addresses of the proxies of internal load balancers in the stack's own network. */
  readonly proxyCidrs?: readonly string[];
}

/** The addresses of Google's front ends and health checks. */
const googleFrontEnds = ["35.191.0.0/16", "130.211.0.0/22"];

/** Google's services for a cluster in addition to machines: a bucket, accounts for pods, a registry. */
export class GkeServices implements CloudServices {
  readonly bucket: GkeBucket;
  readonly bucketUri: pulumi.Output<string>;
  readonly cachedImage: (image: string) => pulumi.Input<string>;
  readonly podEnvironment = {};
  readonly hasGkeGateways = true;
  readonly loadBalancerRanges: Readonly<Record<string, readonly string[]>>;
  readonly #name: string;
  readonly #args: GkeServicesArgs;
  #images: ((image: string) => ImageRepository) | undefined;

  constructor(name: string, args: GkeServicesArgs) {
    const { config, project, parent } = args;
    this.#name = name;
    this.#args = args;
    this.bucket = new GkeBucket(
      `${name}-bucket`,
      { config, project, key: args.key, adopted: config.bucket },
      { parent },
    );
    this.bucketUri = this.bucket.uri;
    const withProxies = [...googleFrontEnds, ...(args.proxyCidrs ?? [])];
    this.loadBalancerRanges = { gce: googleFrontEnds, "gce-internal": withProxies, gateway: withProxies };
    this.cachedImage = config.imageCache ? createGkeImageCache(`${name}-cache`, args) : (image) => image;
  }

  /** Creates a cloud service account for exactly one service account of Kubernetes, which may impersonate it. */
  createIdentity(
    name: string,
    { namespace, name: accountName, folder, bucketAccess = "direct" }: IdentityArgs,
  ): PodIdentity {
    const { parent, identityPool } = this.#args;
    const account = createAccount(`${this.#name}-${name}`, `pods of ${namespace}/${accountName}`, this.#args);
    if (bucketAccess === "direct") this.bucket.allowObjects(`${this.#name}-${name}`, account.email, parent, folder);
    new gcp.serviceaccount.IAMMember(
      `${this.#name}-${name}-identity`,
      {
        serviceAccountId: account.name,
        role: "roles/iam.workloadIdentityUser",
        member: pulumi.interpolate`serviceAccount:${identityPool}[${namespace}/${accountName}]`,
      },
      { parent },
    );
    const annotations = account.email.apply(
      (email): Record<string, string> => ({ [identityAnnotations.GKE_AUTH]: email }),
    );
    return { annotations, principal: account.email };
  }

  /** Returns no role, because the holder of Google's tokens restricts them itself. */
  createVendingRole(): undefined {}

  createBackups({ principal }: PodIdentity): Backups {
    const { config, project, parent, key } = this.#args;
    const name = `${this.#name}-backups`;
    const adopted = backupsBucket(config.catalog);
    const bucket = new GkeBucket(name, { config, project, key, adopted }, { parent });
    bucket.allowObjects(name, principal, parent);
    return { uri: bucket.uri, region: undefined };
  }

  createImageRepository(image: string): ImageRepository {
    this.#images ??= createGkeImages(`${this.#name}-images`, this.#args);
    return this.#images(image);
  }
}
