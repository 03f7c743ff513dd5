import * as aws from "@pulumi/aws";
import * as pulumi from "@pulumi/pulumi";
import { type Upstream, upstreamOf } from "../../image-names.ts";
import type { EksServicesConfig } from "./eks-services.ts";
import type { Statement } from "./policies.ts";
import { resourcePrefix } from "./resource-prefix.ts";

/** What AWS keeps copies of, and the ends of the prefixes under which it does. A prefix has 30 characters at most. */
const upstreams: Readonly<Record<Upstream, { readonly url: string; readonly prefix: string }>> = {
  "docker-hub": { url: "registry-1.docker.io", prefix: "hub" },
  quay: { url: "quay.io", prefix: "quay" },
  kubernetes: { url: "registry.k8s.io", prefix: "k8s" },
};

/**
 * Copies of public images in the account's own registry, made when they are first pulled: a fleet of nodes behind one
 * address soon has what Docker Hub gives to an address.
 *
 * @returns The name of an image as nodes pull it; undefined where the stack has no cache.
 */
export function createEksImageCache(
  name: string,
  config: EksServicesConfig,
  partition: string,
  parent: pulumi.Resource,
): ((image: string) => pulumi.Input<string>) | undefined {
  const { region, imageCache } = config;
  if (imageCache === undefined) return undefined;
  const domain = partition === "aws-cn" ? "amazonaws.com.cn" : "amazonaws.com";
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
    return pulumi.interpolate`${rule.registryId}.dkr.ecr.${region}.${domain}/${rule.ecrRepositoryPrefix}`;
  };
  const caches = { "docker-hub": create("docker-hub"), quay: create("quay"), kubernetes: create("kubernetes") };
  return (image) => {
    const found = upstreamOf(image);
    return found === undefined ? image : pulumi.interpolate`${caches[found.upstream]}/${found.name}`;
  };
}

/** What nodes need besides pulling: the first pull of an image makes its repository. */
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
