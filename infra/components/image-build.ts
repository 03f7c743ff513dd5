import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import * as dockerBuild from "@pulumi/docker-build";
import * as pulumi from "@pulumi/pulumi";
import type { ImageRepository } from "../cluster.ts";
import type { Architecture } from "../machines.ts";

const checkout = join(import.meta.dirname, "../..");
/** From where Pulumi runs the program and its plugins. An absolute path would be another image for each checkout. */
const context = relative(process.cwd(), checkout) || ".";
/** What an image is made of. */
export interface ImageSource {
  /** In the checkout, as what it copies. */
  readonly dockerfile: string;
  /** What the Dockerfile copies into the image, and what says so. */
  readonly sources: readonly string[];
  readonly architectures: readonly Architecture[];
  readonly buildArgs?: Readonly<Record<string, string>>;
}

/**
 * An image that is built from this checkout and pushed. It is built anew when something
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
  const exclude = ["**/node_modules/**", "**/__pycache__/**"];
  const files = globSync([...sources], { cwd: checkout, exclude }).map((file) => file.split(sep).join("/"));
  for (const file of files.toSorted()) {
    // Git may write the ends of lines as the machine likes them.
    const text = readFileSync(join(checkout, file), "utf8").replaceAll("\r\n", "\n");
    hash.update(`${file}\0${text}\0`);
  }
  for (const [name, value] of Object.entries(buildArgs)) hash.update(`${name}=${value}\0`);
  return hash.digest("hex").slice(0, 16);
}
