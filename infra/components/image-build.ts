import { createHash, type Hash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import * as dockerBuild from "@pulumi/docker-build";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
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
  /** Digests of base images by their names, as the Dockerfile writes them. */
  readonly digests?: Readonly<Record<string, string>>;
}

/**
 * Builds an image and pushes it. A hash of its content is in its tag, so a changed content is built again.
 *
 * @returns The name with the digest, so that the running image is the built one.
 */
export function buildImage(
  name: string,
  { name: repository, registry }: ImageRepository,
  source: ImageSource,
  parent: pulumi.Resource,
): pulumi.Output<string> {
  const { dockerfile, architectures, buildArgs, digests = {} } = source;
  const content = contentTag(source);
  // A second build of the same content, such as after a rollback, has another digest, and tags are immutable.
  const build = new random.RandomId(name, { byteLength: 4, keepers: { content } }, { parent });
  const image = new dockerBuild.Image(
    name,
    {
      context: { location: context, named: pinnedBases(digests) },
      dockerfile: { location: join(context, dockerfile) },
      platforms: architectures.map((architecture) => `linux/${architecture}` as const),
      ...(buildArgs && { buildArgs }),
      tags: [pulumi.interpolate`${repository}:${content}-${build.hex}`],
      push: true,
      buildOnPreview: false,
      ...(registry !== undefined && { registries: [registry] }),
    },
    { parent },
  );
  return image.ref;
}

/** Returns the contexts that BuildKit uses instead of the base images of these names. */
function pinnedBases(digests: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(digests).map(([base, digest]) => [
      base,
      { location: `docker-image://${base.split(":")[0]}@${digest}` },
    ]),
  );
}

/** The hashed sources of each image, from which several images with other parameters are built. */
const hashes = new Map<ImageContent["sources"], Hash>();

function contentTag(source: ImageSource): string {
  const { sources, buildArgs = {}, digests = {} } = source;
  const hashed = hashes.get(sources) ?? hashOf(sources);
  hashes.set(sources, hashed);
  const hash = hashed.copy();
  for (const [name, value] of Object.entries(buildArgs)) hash.update(`${name}=${value}\0`);
  for (const [base, digest] of Object.entries(digests)) hash.update(`${base}@${digest}\0`);
  return hash.digest("hex").slice(0, 16);
}

function hashOf(sources: ImageContent["sources"]): Hash {
  const hash = createHash("sha256");
  for (const file of sourceFiles(root, sources)) {
    // Git may convert line endings depending on the machine.
    const text = readFileSync(join(root, file), "utf8").replaceAll("\r\n", "\n");
    hash.update(`${file}\0${text}\0`);
  }
  return hash;
}
