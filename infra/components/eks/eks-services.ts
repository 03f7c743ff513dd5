import * as pulumi from "@pulumi/pulumi";
import { identityAnnotations } from "@tiltyard/platform";
import type { Backups, CloudServices, IdentityArgs, ImageRepository, PodIdentity } from "../../cluster.ts";
import { createEksBackups } from "./eks-backups.ts";
import { EksBucket } from "./eks-bucket.ts";
import { createEksImageCache } from "./eks-image-cache.ts";
import { createEksImages } from "./eks-images.ts";
import type { EksServicesConfig } from "./eks-services-config.ts";
import { createRole } from "./iam-role.ts";
import { describeCluster, policyOf, trustPrincipals, trustServiceAccount } from "./policies.ts";
import { resourcePrefix } from "./resource-prefix.ts";

export interface EksServicesArgs {
  readonly config: EksServicesConfig;
  readonly partition: string;
  readonly clusterArn: pulumi.Output<string>;
  readonly oidcProvider: pulumi.Output<{ readonly arn: string; readonly url: string }>;
  /** The addresses from which load balancers of the class `alb` connect to pods. */
  readonly cidrs: readonly string[];
}

/** AWS's services for a cluster in addition to machines: a bucket, roles for pods, a registry. */
export class EksServices implements CloudServices {
  readonly bucket: EksBucket;
  readonly bucketUri: pulumi.Output<string>;
  readonly cachedImage: (image: string) => pulumi.Input<string>;
  readonly podEnvironment: Readonly<Record<string, string>>;
  readonly hasGkeGateways = false;
  readonly loadBalancerRanges: Readonly<Record<string, readonly string[]>>;
  readonly #name: string;
  readonly #args: EksServicesArgs;
  readonly #parent: pulumi.Resource;

  constructor(name: string, args: EksServicesArgs, parent: pulumi.Resource) {
    const { config, partition } = args;
    this.#name = name;
    this.#args = args;
    this.#parent = parent;
    this.bucket = new EksBucket(
      `${name}-bucket`,
      { config, partition, prefix: resourcePrefix(config), adopted: config.bucket },
      { parent },
    );
    this.bucketUri = this.bucket.uri;
    this.cachedImage = createEksImageCache(`${name}-cache`, config, partition, parent) ?? ((image) => image);
    this.podEnvironment = { AWS_REGION: config.region };
    this.loadBalancerRanges = { alb: args.cidrs, gateway: args.cidrs };
  }

  /** Creates a role for exactly one service account, which names the role in an annotation. */
  createIdentity(
    name: string,
    { namespace, name: accountName, folder, bucketAccess = "direct" }: IdentityArgs,
  ): PodIdentity {
    const { config, partition, clusterArn, oidcProvider } = this.#args;
    const rights = bucketAccess === "direct" ? this.bucket.use(folder) : [];
    const { role } = createRole(
      `${this.#name}-${name}`,
      {
        partition,
        clusterName: config.clusterName,
        description: `pods of ${namespace}/${accountName}`,
        trust: oidcProvider.apply((provider) => trustServiceAccount(provider, namespace, accountName)),
        policy: pulumi
          .all([clusterArn, rights])
          .apply(([itsArn, statements]) => policyOf(describeCluster(itsArn), ...statements)),
      },
      this.#parent,
    );
    const annotations = role.arn.apply((arn): Record<string, string> => ({ [identityAnnotations.EKS_AUTH]: arn }));
    return { annotations, principal: role.name };
  }

  /** Creates a role that only the catalog may assume and whose rights do not exceed those of the catalog. */
  createVendingRole({ annotations }: PodIdentity): pulumi.Output<string> {
    const { config, partition } = this.#args;
    const { role } = createRole(
      `${this.#name}-tables`,
      {
        partition,
        clusterName: config.clusterName,
        description: "sessions of the catalog, each for one table",
        trust: annotations.apply((all) => trustPrincipals([all[identityAnnotations.EKS_AUTH] ?? ""])),
        policy: this.bucket.use().apply((statements) => policyOf(...statements)),
      },
      this.#parent,
    );
    return role.arn;
  }

  createBackups({ principal }: PodIdentity): Backups {
    const { config, partition } = this.#args;
    return createEksBackups(`${this.#name}-backups`, { config, partition, roleName: principal }, this.#parent);
  }

  createImageRepository(image: string): ImageRepository {
    return createEksImages(`${this.#name}-${image}`, image, this.#args.config, this.#parent);
  }
}
