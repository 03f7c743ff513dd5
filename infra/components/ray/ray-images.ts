import type * as pulumi from "@pulumi/pulumi";
import * as platform from "@tiltyard/platform";
import type { Cluster } from "../../cluster.ts";
import type { StackConfig } from "../../config.ts";
import { rayImage } from "../../image-sources.ts";
import type { Architecture } from "../../machines.ts";
import { buildImage } from "../image-build.ts";

/** The images of Ray's pods. */
export interface RayImages {
  readonly image: pulumi.Input<string>;
  /** The image of workers with a GPU. */
  readonly gpuImage: pulumi.Input<string>;
}

/** Builds Ray's images with the dependencies of jobs, or returns those that the settings specify. */
export function rayImages(
  name: string,
  config: StackConfig,
  { services }: Cluster,
  parent: pulumi.Resource,
): RayImages {
  const { ray, architectures } = config;
  const pinned = "imageDigests" in config ? config.imageDigests : {};
  const given = { image: services.cachedImage(ray.image), gpuImage: services.cachedImage(ray.gpuImage) };
  const { build } = ray;
  if (build === undefined) return given;
  const { head, workerCpu, workerGpu } = architectures;
  const built = (suffix: string, imageName: string, variant: string, nodes: readonly Architecture[]) => {
    const repository = services.createImageRepository(imageName);
    if (repository === undefined) return undefined;
    const buildArgs = { RAY_VERSION: ray.version, VARIANT: variant, EXTRA_PACKAGES: build.packages.join(" ") };
    const nameOf = variant === "" ? platform.rayImage : platform.rayGpuImage;
    const kinds = [...new Set(nodes)];
    const bases = kinds.map((kind) => nameOf(ray.version, kind));
    const digests = Object.fromEntries(Object.entries(pinned).filter(([base]) => bases.includes(base)));
    const source = { ...rayImage, digests, architectures: kinds, buildArgs };
    return buildImage(`${name}-${suffix}`, repository, source, parent);
  };
  return {
    image: built("image", "tiltyard-ray", "", [head, workerCpu]) ?? given.image,
    gpuImage: (build.gpu ? built("gpu-image", "tiltyard-ray-gpu", "-gpu", [workerGpu]) : undefined) ?? given.gpuImage,
  };
}
