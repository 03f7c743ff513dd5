import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** The folder with the bundled console, which packages and images have; a checkout bundles the console on the fly. */
const folder = join(import.meta.dirname, "assets");

let assets: Promise<ReadonlyMap<string, Uint8Array<ArrayBuffer>>> | undefined;

/** Returns the files of the console and of Swagger UI by name, such as `index.html`. */
export function consoleAssets(): Promise<ReadonlyMap<string, Uint8Array<ArrayBuffer>>> {
  assets ??= readAssets();
  return assets;
}

async function readAssets(): Promise<ReadonlyMap<string, Uint8Array<ArrayBuffer>>> {
  if (existsSync(folder)) return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
  const { bundle } = await import("./bundle.ts");
  const files = await bundle(folder, false);
  return new Map(files.map(({ path, contents }) => [basename(path), new Uint8Array(contents)]));
}
