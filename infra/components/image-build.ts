import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import * as dockerBuild from "@pulumi/docker-build";
import * as pulumi from "@pulumi/pulumi";
import type { ImageRepository } from "../cluster.ts";
import { type ImageContent, sourceFiles } from "../image-sources.ts";
import type { Architecture } from "../machines.ts";

/** The installed package has the sources of images in a folder of its own. */
const packaged = join(import.meta.dirname, "../images");
const root = existsSync(packaged) ? packaged : join(import.meta.dirname, "../..");
/** From where Pulumi runs the program and its plugins. An absolute path would be another image for each checkout. */
const context = relative(process.cwd(), root) || ".";
/** What an image is made of. */
export interface ImageSource extends ImageContent {
  readonly architectures: readonly Architecture[];
  readonly buildArgs?: Readonly<Record<string, string>>;
}

/**
 * An image that is built from these sources and pushed. It is built again when something
 * of it changed: its tag tells its content, and is the same for the same content everywhere.
 *
 * @returns Its name with its digest, so that what runs is what was built.
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
    // Git may write the ends of lines as the machine likes them.
    const text = readFileSync(join(root, file), "utf8").replaceAll("\r\n", "\n");
    hash.update(`${file}\0${text}\0`);
  }
  for (const [name, value] of Object.entries(buildArgs)) hash.update(`${name}=${value}\0`);
  return hash.digest("hex").slice(0, 16);
}
