import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import * as dockerBuild from "@pulumi/docker-build";
import * as pulumi from "@pulumi/pulumi";
import type { ImageRepository } from "../cluster.ts";
import { type ImageContent, sourceFiles } from "../image-sources.ts";
import type { Architecture } from "../machines.ts";

/** The folder with the sources of images in the installed package. */
const packaged = join(import.meta.dirname, "../images");
const root = existsSync(packaged) ? packaged : join(import.meta.dirname, "../..");
/**
 * The context relative to the working directory of Pulumi. An absolute path would produce a different image for each
 * checkout.
 */
const context = relative(process.cwd(), root) || ".";
/** The sources and the parameters of an image. */
export interface ImageSource extends ImageContent {
  readonly architectures: readonly Architecture[];
  readonly buildArgs?: Readonly<Record<string, string>>;
}

/**
 * Builds an image from its sources and pushes it. The image is rebuilt when its content changes: the tag is a hash of
 * the content and thus equal for equal content everywhere.
 *
 * @returns The name with the digest, so that the running image is the built one.
 */
export function buildImage(
  name: string,
  { name: repository, registry }: ImageRepository,
  source: ImageSource,
  parent: pulumi.Resource,
): pulumi.Output<string> {
  const { dockerfile, architectures, buildArgs } = source;
  const image = new dockerBuild.Image(
    name,
    {
      context: { location: context },
      dockerfile: { location: join(context, dockerfile) },
      platforms: architectures.map((architecture) => `linux/${architecture}` as const),
      ...(buildArgs && { buildArgs }),
      tags: [pulumi.interpolate`${repository}:${contentTag(source)}`],
      push: true,
      buildOnPreview: false,
      registries: [registry],
    },
    { parent },
  );
  return image.ref;
}

function contentTag({ sources, buildArgs = {} }: ImageSource): string {
  const hash = createHash("sha256");
  for (const file of sourceFiles(root, sources)) {
    // Git may convert line endings depending on the machine.
    const text = readFileSync(join(root, file), "utf8").replaceAll("\r\n", "\n");
    hash.update(`${file}\0${text}\0`);
  }
  for (const [name, value] of Object.entries(buildArgs)) hash.update(`${name}=${value}\0`);
  return hash.digest("hex").slice(0, 16);
}
