import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { run } from "./run.ts";

const texts = z.record(z.string(), z.string());
/** The fields of a workspace's package.json that packaging reads. */
const Manifest = z.looseObject({
  name: z.string(),
  version: z.string(),
  private: z.literal(true),
  exports: texts.optional(),
  bin: texts.optional(),
  files: z.array(z.string()).default([]),
  dependencies: texts.default({}),
  optionalDependencies: texts.optional(),
  /** The dependencies of one export each, which the programs that import it install themselves. */
  peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.literal(true) })).default({}),
});
type Manifest = z.infer<typeof Manifest>;

/** The folders and the repository that a package is built from. */
export interface Sources {
  readonly checkout: string;
  /** The output folder of tsc, with a subfolder for each workspace. */
  readonly compiled: string;
  /** The repository in the manifests. npm's provenance compares it with the repository of the build. */
  readonly repository: string | undefined;
}

/** The files of the checkout that every package contains. */
const common = ["LICENSE", "CHANGELOG.md"];

/**
 * Lays out a package for publication: the modules of a workspace as JavaScript, at the paths of their sources in the
 * checkout, so that relative file references still work.
 *
 * @param more Additional files by target folder.
 */
export function stagePackage(
  workspace: string,
  staging: string,
  { checkout, compiled, repository }: Sources,
  more: Readonly<Record<string, readonly string[]>> = {},
): void {
  const source = join(checkout, workspace);
  const manifest = Manifest.parse(JSON.parse(readFileSync(join(source, "package.json"), "utf8")));
  const copy = (from: string, files: readonly string[], to = staging) => {
    for (const file of files) cpSync(join(from, file), join(to, file));
  };
  const modules = globSync("**/*.{js,d.ts,js.map}", { cwd: join(compiled, workspace) });
  for (const file of modules) {
    mkdirSync(dirname(join(staging, file)), { recursive: true });
    writeFileSync(join(staging, file), withoutSources(file, readFileSync(join(compiled, workspace, file), "utf8")));
  }
  copy(source, [...globSync(manifest.files, { cwd: source }), "README.md"]);
  copy(checkout, common);
  for (const [folder, files] of Object.entries(more)) copy(checkout, files, join(staging, folder));

  const text = modules.map((file) => readFileSync(join(staging, file), "utf8")).join("\n");
  const published = {
    ...publishedManifest(manifest, text),
    ...(repository && { repository: sourceOf(repository, workspace) }),
  };
  writeFileSync(join(staging, "package.json"), `${JSON.stringify(published, undefined, 2)}\n`);
}

/** Packs a staged package into an npm tarball. */
export function packStaged(staging: string, destination: string): void {
  run(...npm("pack", "--loglevel=error", "--pack-destination", destination), { cwd: staging });
}

/** Returns the npm that started this script. The npm next to the current Node may be a different one. */
function npm(...args: readonly string[]): [string, readonly string[]] {
  const cli = process.env.npm_execpath;
  return cli === undefined ? ["npm", args] : [process.execPath, [cli, ...args]];
}

/** Replaces the names of sources, which tsc keeps in declarations. */
function withoutSources(file: string, text: string): string {
  return file.endsWith(".d.ts") ? text.replaceAll(/(from |import\()"(\.[^"]+)\.ts"/g, '$1"$2.js"') : text;
}

/**
 * Returns the manifest of the workspace with JavaScript in place of TypeScript and only the dependencies that its
 * modules import.
 */
function publishedManifest(manifest: Manifest, modules: string): object {
  const {
    private: _,
    exports,
    bin,
    files,
    dependencies,
    devDependencies: __,
    peerDependenciesMeta: peers,
    ...rest
  } = manifest;
  // The command's package depends on programs that it starts and does not import.
  const isUsed = (name: string) =>
    /^@(types|tiltyard)\//.test(name) || modules.includes(`"${name}"`) || modules.includes(`"${name}/`);
  const of = (isPeer: boolean) =>
    Object.fromEntries(Object.entries(dependencies).filter(([name]) => isUsed(name) && name in peers === isPeer));
  return {
    ...rest,
    ...(bin && { bin: mapped(bin, toJavaScript) }),
    ...(exports && { exports: mapped(exports, (path, name) => exported(path, name)) }),
    files: ["**"],
    dependencies: of(false),
    ...(Object.keys(peers).length > 0 && { peerDependencies: of(true), peerDependenciesMeta: peers }),
    publishConfig: { access: "public" },
  };
}

const libraries = [".", "./catalog", "./eks", "./gke"];

/** Returns the export of a module. Libraries have types; programs are only run. */
function exported(path: string, name: string): unknown {
  const javascript = toJavaScript(path);
  return libraries.includes(name) ? { types: path.replace(/\.ts$/, ".d.ts"), default: javascript } : javascript;
}

function toJavaScript(path: string): string {
  return path.replace(/\.ts$/, ".js");
}

function mapped<Value>(
  record: Readonly<Record<string, string>>,
  to: (value: string, name: string) => Value,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, to(value, name)]));
}

function sourceOf(repository: string, directory: string): object {
  return { type: "git", url: `git+${repository}.git`, directory };
}
