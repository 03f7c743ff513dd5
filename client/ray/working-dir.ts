import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, realpathSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { type Zippable, zipSync } from "fflate";
import ignore from "ignore";

/** A packed folder for Ray. */
export interface Package {
  /** The URI, which contains a hash of the content so that equal folders are uploaded only once. */
  readonly uri: string;
  readonly content: Uint8Array;
}

/** The maximum size of a request to Ray's dashboard. */
const packageBytesMax = 100 * 2 ** 20;
/** The maximum size of a folder, which is packed in memory. */
const folderBytesMax = 500 * 2 ** 20;
/** The names that are never packed, whatever the ignore files contain. */
const neverPacked = [".git", "__pycache__", ".venv", "node_modules", ".DS_Store"];
const ignoreFiles = [".gitignore", ".rayignore"];
/** The time of all files, so that a package depends only on its content. Zip files cannot represent times before 1980. */
const someTime = new Date("1980-01-02T00:00:00Z");
/** The operating system in a zip file whose file modes are stored. */
const unix = 3;

/**
 * Packs a folder as Ray's `working_dir`, without the paths that its `.gitignore` and `.rayignore` files list.
 *
 * @throws Error if the folder does not exist or is too large.
 */
export function packWorkingDirectory(folder: string): Package {
  if (!existsSync(folder) || !statSync(folder).isDirectory())
    throw new Error(`the working directory ${folder} is not a folder`);
  const files: Zippable = {};
  let size = 0;
  for (const { path, stats } of filesOf({ folder, path: "", rules: [], above: [] })) {
    size += stats.size;
    if (size > folderBytesMax) throw tooLarge(folder, folderBytesMax);
    files[path] = [readFileSync(join(folder, path)), { os: unix, attrs: stats.mode << 16 }];
  }
  const content = zipSync(files, { mtime: someTime });
  if (content.length > packageBytesMax) throw tooLarge(folder, packageBytesMax, " packed");
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 16);
  return { uri: `gcs://_ray_pkg_${hash}.zip`, content };
}

function tooLarge(folder: string, bytesMax: number, how = ""): Error {
  const limit = `${bytesMax / 2 ** 20} MiB${how}`;
  return new Error(
    `the working directory ${folder} has more than ${limit}: list unneeded files in .rayignore, and read data from the bucket`,
  );
}

/** The ignore files of one folder, which apply to the paths below it. */
interface Rules {
  readonly folder: string;
  readonly ignores: (path: string) => boolean;
}

interface Visit {
  readonly folder: string;
  /** The path of this folder in the package, with a trailing slash. */
  readonly path: string;
  readonly rules: readonly Rules[];
  /** The real paths of this folder and its ancestors. A link to one of them is a cycle. */
  readonly above: readonly string[];
}

interface PackedFile {
  readonly path: string;
  readonly stats: Stats;
}

function* filesOf(visit: Visit): Generator<PackedFile> {
  const { path: parent } = visit;
  const folder = join(visit.folder, parent);
  const real = realpathSync(folder);
  if (visit.above.includes(real)) return;
  const above = [...visit.above, real];
  const rules = [...visit.rules, { folder: parent, ignores: readIgnoreFiles(folder) }];
  for (const name of readdirSync(folder).toSorted()) {
    // Links are packed as their targets, which do not exist on the machines of the job.
    const stats = statSync(join(folder, name), { throwIfNoEntry: false });
    const path = `${parent}${name}${stats?.isDirectory() ? "/" : ""}`;
    if (stats === undefined || rules.some((each) => each.ignores(path.slice(each.folder.length)))) continue;
    if (stats.isDirectory()) yield* filesOf({ ...visit, path, rules, above });
    else if (stats.isFile()) yield { path, stats };
  }
}

function readIgnoreFiles(folder: string): (path: string) => boolean {
  const rules = ignore().add(neverPacked);
  for (const file of ignoreFiles.map((name) => join(folder, name)))
    if (existsSync(file)) rules.add(readFileSync(file, "utf8"));
  return (path) => rules.ignores(path);
}
