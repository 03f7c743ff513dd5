import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { type Zippable, zipSync } from "fflate";
import ignore from "ignore";

/** A folder, packed for Ray. */
export interface Package {
  /** Named by its content, so that the same folder is uploaded once. */
  readonly uri: string;
  readonly content: Uint8Array;
}

/** Ray's own limit for a package. */
const packageBytesMax = 500 * 2 ** 20;
/** Never part of a job, whatever the ignore files say. */
const neverPacked = [".git", "__pycache__", ".venv", "node_modules", ".DS_Store"];
const ignoreFiles = [".gitignore", ".rayignore"];
/** Zip files know no time before 1980. The same for all, so that a package depends on contents alone. */
const someTime = new Date("1980-01-02T00:00:00Z");

/**
 * Packs a folder as Ray's `working_dir`, without what `.gitignore` and `.rayignore` name.
 *
 * @throws Error When the folder is not there or is too large.
 */
export function packWorkingDirectory(folder: string): Package {
  if (!existsSync(folder) || !statSync(folder).isDirectory())
    throw new Error(`the working directory ${folder} is no folder`);
  const rules = ignore().add(neverPacked);
  for (const file of ignoreFiles) {
    const path = join(folder, file);
    if (existsSync(path)) rules.add(readFileSync(path, "utf8"));
  }
  const files: Zippable = {};
  let size = 0;
  for (const path of filesOf(folder, folder, rules)) {
    const content = readFileSync(join(folder, path));
    size += content.length;
    if (size > packageBytesMax)
      throw new Error(
        `the working directory ${folder} has more than ${packageBytesMax / 2 ** 20} MiB: name what is not needed in .rayignore`,
      );
    files[path] = content;
  }
  const content = zipSync(files, { mtime: someTime });
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 16);
  return { uri: `gcs://_ray_pkg_${hash}.zip`, content };
}

function* filesOf(root: string, folder: string, rules: ReturnType<typeof ignore>): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = relative(root, join(folder, entry.name)).split(sep).join("/");
    if (rules.ignores(entry.isDirectory() ? `${path}/` : path)) continue;
    if (entry.isDirectory()) yield* filesOf(root, join(folder, entry.name), rules);
    else if (entry.isFile()) yield path;
  }
}
