import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as dockerBuild from "@pulumi/docker-build";
import * as pulumi from "@pulumi/pulumi";
import type { ImageRepository } from "../../cluster.ts";

const checkout = join(import.meta.dirname, "../../..");
/** What the Dockerfile copies into the image, and what says so. */
const sources = [
  "Dockerfile",
  ".dockerignore",
  "package*.json",
  ".npmrc",
  "{infra,client,runner,test}/package.json",
  "{protocol,service}/**/*.*",
];

/**
 * The catalog's image, built from this checkout and pushed. It is built anew when something
 * of it changed, or when the checkout is at another place: its tag tells its content.
 *
 * @returns Its name with its digest, so that what runs is what was built.
 */
export function buildCatalogImage(
  name: string,
  { name: repository, registry }: ImageRepository,
  parent: pulumi.Resource,
): pulumi.Output<string> {
  const image = new dockerBuild.Image(
    name,
    {
      context: { location: checkout },
      dockerfile: { location: join(checkout, "Dockerfile") },
      platforms: ["linux/amd64"],
      tags: [pulumi.interpolate`${repository}:${contentTag()}`],
      push: true,
      buildOnPreview: false,
      registries: [registry],
    },
    { parent },
  );
  return image.ref;
}

function contentTag(): string {
  const hash = createHash("sha256");
  const exclude = ["**/node_modules/**"];
  for (const file of globSync(sources, { cwd: checkout, exclude }).toSorted())
    hash.update(`${file}\0`).update(readFileSync(join(checkout, file)));
  return hash.digest("hex").slice(0, 16);
}
