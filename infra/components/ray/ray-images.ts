import type * as pulumi from "@pulumi/pulumi";
import type { Cluster } from "../../cluster.ts";
import type { StackConfig } from "../../config.ts";
import { rayImage } from "../../image-sources.ts";
import type { Architecture } from "../../machines.ts";
import { buildImage } from "../image-build.ts";

/** The images of Ray's pods. */
export interface RayImages {
  readonly image: pulumi.Input<string>;
  /** Of workers with a GPU. */
  readonly gpuImage: pulumi.Input<string>;
}

/** Builds Ray's images with what jobs need, or takes those that the settings name. */
export function rayImages(
  name: string,
  { ray, architectures }: StackConfig,
  { services }: Cluster,
  parent: pulumi.Resource,
): RayImages {
  const [repository, gpuRepository] =
    ray.build === undefined
      ? []
      : ["tiltyard-ray", "tiltyard-ray-gpu"].map((image) => services.createImageRepository(image));
  if (ray.build === undefined || repository === undefined || gpuRepository === undefined)
    return { image: services.cachedImage(ray.image), gpuImage: services.cachedImage(ray.gpuImage) };
  const source = (variant: string, nodes: readonly Architecture[]) => ({
    ...rayImage,
    architectures: [...new Set(nodes)],
    buildArgs: { RAY_VERSION: ray.version, VARIANT: variant, EXTRA_PACKAGES: ray.build?.packages.join(" ") ?? "" },
  });
  const { head, workerCpu, workerGpu } = architectures;
  return {
    image: buildImage(`${name}-image`, repository, source("", [head, workerCpu]), parent),
    gpuImage: buildImage(`${name}-gpu-image`, gpuRepository, source("-gpu", [workerGpu]), parent),
  };
}
