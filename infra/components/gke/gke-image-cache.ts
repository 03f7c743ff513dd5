import * as pulumi from "@pulumi/pulumi";
import { type Upstream, upstreamOf } from "../image-names.ts";
import { createRepository, type GkeImagesArgs } from "./gke-images.ts";

/** The registries that Google caches. */
const upstreams = {
  "docker-hub": { publicRepository: "DOCKER_HUB" },
  quay: { customRepository: { uri: "https://quay.io" } },
  kubernetes: { customRepository: { uri: "https://registry.k8s.io" } },
} as const satisfies Record<Upstream, object>;

/**
 * Creates a cache of public images in the project's own registry, which is filled by the first pull of each image. Many
 * nodes behind one address would otherwise soon exhaust the pull limit of Docker Hub.
 *
 * @returns The name of an image as nodes pull it.
 */
export function createGkeImageCache(name: string, args: GkeImagesArgs): (image: string) => pulumi.Input<string> {
  const { region, project } = args.config;
  const create = (upstream: Upstream) => {
    const repository = createRepository(`${name}-${upstream}`, upstream, args, {
      mode: "REMOTE_REPOSITORY",
      remoteRepositoryConfig: { dockerRepository: upstreams[upstream] },
    });
    return pulumi.interpolate`${region}-docker.pkg.dev/${project}/${repository.repositoryId}`;
  };
  const caches = { "docker-hub": create("docker-hub"), quay: create("quay"), kubernetes: create("kubernetes") };
  return (image) => {
    const found = upstreamOf(image);
    return found === undefined ? image : pulumi.interpolate`${caches[found.upstream]}/${found.name}`;
  };
}
