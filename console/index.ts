import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** The folder with the bundled console, which packages and images have; a checkout bundles the console on the fly. */
const folder = join(import.meta.dirname, "assets");

/** Returns the files of the console by name, such as `index.html`. */
export async function consoleAssets(): Promise<ReadonlyMap<string, Uint8Array<ArrayBuffer>>> {
  if (existsSync(folder)) return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
  const { bundle } = await import("./bundle.ts");
  const { outputFiles } = await bundle(folder, false);
  return new Map(outputFiles.map(({ path, contents }) => [basename(path), new Uint8Array(contents)]));
}
