import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { type Upstream, upstreamOf } from "../image-names.ts";
import { domainOf } from "./eks-account.ts";
import type { EksServicesConfig } from "./eks-services-config.ts";
import type { Statement } from "./policies.ts";
import { resourcePrefix } from "./resource-prefix.ts";

/** The registries that AWS caches, and the ends of the prefixes of their copies. A prefix has at most 30 characters. */
const upstreams: Readonly<Record<Upstream, { readonly url: string; readonly prefix: string }>> = {
  "docker-hub": { url: "registry-1.docker.io", prefix: "hub" },
  quay: { url: "quay.io", prefix: "quay" },
  kubernetes: { url: "registry.k8s.io", prefix: "k8s" },
};

/**
 * Creates a cache of public images in the account's own registry, which is filled by the first pull of each image. Many
 * nodes behind one address would otherwise soon exhaust the pull limit of Docker Hub.
 *
 * @returns The name of an image as nodes pull it; undefined if the stack has no cache.
 */
export function createEksImageCache(
  name: string,
  config: EksServicesConfig,
  partition: string,
  parent: pulumi.Resource,
): ((image: string) => pulumi.Input<string>) | undefined {
  const { region, imageCache } = config;
  if (imageCache === undefined) return undefined;
  const create = (upstream: Upstream) => {
    const { url, prefix } = upstreams[upstream];
    const rule = new aws.ecr.PullThroughCacheRule(
      `${name}-${prefix}`,
      {
        ecrRepositoryPrefix: `${resourcePrefix(config)}/${prefix}`,
        upstreamRegistryUrl: url,
        ...(upstream === "docker-hub" && { credentialArn: imageCache.dockerHubCredentials }),
      },
      { parent },
    );
    return pulumi.interpolate`${rule.registryId}.dkr.ecr.${region}.${domainOf(partition)}/${rule.ecrRepositoryPrefix}`;
  };
  const caches = { "docker-hub": create("docker-hub"), quay: create("quay"), kubernetes: create("kubernetes") };
  return (image) => {
    const found = upstreamOf(image);
    return found === undefined ? image : pulumi.interpolate`${caches[found.upstream]}/${found.name}`;
  };
}

/** Returns the rights that nodes need in addition to pulling, because the first pull of an image creates its repository. */
export function importImages(args: {
  readonly partition: string;
  readonly region: string;
  readonly accountId: string;
  readonly clusterName: string;
}): Statement {
  const { partition, region, accountId, clusterName } = args;
  return {
    Effect: "Allow",
    Action: ["ecr:BatchImportUpstreamImage", "ecr:CreateRepository"],
    Resource: Object.values(upstreams).map(
      ({ prefix }) => `arn:${partition}:ecr:${region}:${accountId}:repository/${clusterName}/${prefix}/*`,
    ),
  };
}
