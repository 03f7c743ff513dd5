import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import { type Upstream, upstreamOf } from "../../image-names.ts";
import { cleanUp, type GkeImagesArgs, letNodesPull } from "./gke-images.ts";

/** What Google keeps copies of. */
const upstreams = {
  "docker-hub": { publicRepository: "DOCKER_HUB" },
  quay: { customRepository: { uri: "https://quay.io" } },
  kubernetes: { customRepository: { uri: "https://registry.k8s.io" } },
} as const satisfies Record<Upstream, object>;

/**
 * Copies of public images in the project's own registry, made when they are first pulled: a fleet of nodes behind one
 * address soon has what Docker Hub gives to an address.
 *
 * @returns The name of an image as nodes pull it.
 */
export function createGkeImageCache(name: string, args: GkeImagesArgs): (image: string) => pulumi.Input<string> {
  const { config, parent, project } = args;
  const { region, clusterName } = config;
  const create = (upstream: Upstream) => {
    const repository = new gcp.artifactregistry.Repository(
      `${name}-${upstream}`,
      {
        project,
        format: "DOCKER",
        mode: "REMOTE_REPOSITORY",
        location: region,
        repositoryId: `${clusterName}-${upstream}`,
        remoteRepositoryConfig: { dockerRepository: upstreams[upstream] },
        ...cleanUp,
      },
      { parent },
    );
    letNodesPull(`${name}-${upstream}`, repository, args);
    return pulumi.interpolate`${region}-docker.pkg.dev/${config.project}/${repository.repositoryId}`;
  };
  const caches = { "docker-hub": create("docker-hub"), quay: create("quay"), kubernetes: create("kubernetes") };
  return (image) => {
    const found = upstreamOf(image);
    return found === undefined ? image : pulumi.interpolate`${caches[found.upstream]}/${found.name}`;
  };
}
