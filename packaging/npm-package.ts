import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { run } from "./run.ts";

const texts = z.record(z.string(), z.string());
/** A workspace's package.json, as this reads it. */
const Manifest = z.looseObject({
  name: z.string(),
  version: z.string(),
  private: z.literal(true),
  exports: texts.optional(),
  bin: texts.optional(),
  files: z.array(z.string()).default([]),
  dependencies: texts,
  optionalDependencies: texts.optional(),
});
type Manifest = z.infer<typeof Manifest>;

/** Where a package is made, and from what. */
export interface Sources {
  readonly checkout: string;
  /** What tsc wrote, with a folder for each workspace. */
  readonly compiled: string;
  /** What packages say where their source is; npm's provenance compares it with where they were built. */
  readonly repository: string | undefined;
}

/** What every package has, from the checkout. */
const common = ["LICENSE", "CHANGELOG.md"];

/**
 * Lays out a package as npm publishes it: a workspace's modules as JavaScript, where their sources are in the checkout,
 * so that each finds what it reads beside itself.
 *
 * @param more Further files, by the folder that they go to.
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

/** @returns The name of the tarball that npm made of a staged package. */
export function packStaged(staging: string, destination: string): void {
  run(...npm("pack", "--loglevel=error", "--pack-destination", destination), { cwd: staging });
}

/** npm as `npm run` was started by; a Node beside it may be another one. */
function npm(...args: readonly string[]): [string, readonly string[]] {
  const cli = process.env.npm_execpath;
  return cli === undefined ? ["npm", args] : [process.execPath, [cli, ...args]];
}

/** tsc leaves the names of sources in declarations, and in functions whose `using` it rewrites. */
function withoutSources(file: string, text: string): string {
  return file.endsWith(".ts") || file.endsWith(".js")
    ? text.replaceAll(/(from |import\()"(\.[^"]+)\.ts"/g, '$1"$2.js"')
    : text;
}

/** The manifest of the workspace, with JavaScript in place of TypeScript and the dependencies that the modules name. */
function publishedManifest(manifest: Manifest, modules: string): object {
  const { private: _, exports, bin, files, dependencies, ...rest } = manifest;
  const isUsed = (name: string) => modules.includes(`"${name}"`) || modules.includes(`"${name}/`);
  return {
    ...rest,
    ...(bin && { bin: mapped(bin, toJavaScript) }),
    ...(exports && { exports: mapped(exports, (path, name) => exported(path, name)) }),
    files: ["**"],
    dependencies: Object.fromEntries(
      Object.entries(dependencies).filter(([name]) => name.startsWith("@types/") || isUsed(name)),
    ),
    publishConfig: { access: "public" },
  };
}

/** Modules with types are libraries; programs are only run. */
function exported(path: string, name: string): unknown {
  const javascript = toJavaScript(path);
  return name === "." ? { types: path.replace(/\.ts$/, ".d.ts"), default: javascript } : javascript;
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
