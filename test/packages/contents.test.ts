import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, matchesGlob, posix } from "node:path";
import ts from "typescript";
import { describe, expect, inject, test } from "vitest";
import { catalogImage, rayImage, sourceFiles } from "../../infra/image-sources.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { read } from "../support/tools.ts";

const packages = inject("packages");
const { version, workspaces } = JSON.parse(readFileSync("package.json", "utf8"));

const texts = ["package.json", "README.md", "LICENSE", "CHANGELOG.md"];
const programs = ["**/*.js", "**/*.js.map"];
const library = [...programs, "**/*.d.ts"];
/** The content of each package in addition to the common texts. */
const contents: Readonly<Record<string, readonly string[]>> = {
  protocol: [...library, "api-document/examples.json"],
  platform: library,
  client: library,
  console: [...library, "assets/*.{css,html,js,svg}"],
  "lance-worker": library,
  service: programs,
  runner: [...programs, "job/requirements.txt", "job/tiltyard/**/*.py"],
  infra: [...library, "PulumiPlugin.yaml"],
  tiltyard: programs,
};

/** Unpacks a package from its tarball. */
function unpack(name: string) {
  const file = `${name === "tiltyard" ? name : `tiltyard-${name}`}-${version}.tgz`;
  const folder = temporaryFolder("package-");
  const { status } = spawnSync("tar", ["xzf", join(packages, file), "-C", folder]);
  expect(status).toBe(0);
  const root = join(folder, "package");
  const files = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.join(entry.parentPath, entry.name).slice(root.length + 1));
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return { root, files, manifest };
}

test("every workspace but the tests is a package, and Python has two files", () => {
  const names = workspaces.filter((name: string) => name !== "test");
  expect(Object.keys(contents).sort()).toEqual(names.sort());
  const npm = names.map((name: string) => `${name === "tiltyard" ? name : `tiltyard-${name}`}-${version}.tgz`);
  const python = [`tiltyard-${version}-py3-none-any.whl`, `tiltyard-${version}.tar.gz`];
  expect(readdirSync(packages).sort()).toEqual([...npm, ...python].sort());
});

test("the compiler finds each export of a workspace by its path, because it emits no module that it found in node_modules", () => {
  const { config } = ts.readConfigFile("packaging/tsconfig.json", (path) => readFileSync(path, "utf8"));
  const exported = Object.keys(contents).flatMap((workspace) => {
    const manifest = JSON.parse(readFileSync(`${workspace}/package.json`, "utf8"));
    return Object.entries(manifest.exports ?? {}).map(([name, path]) => [
      posix.join(manifest.name, name),
      [posix.join("..", workspace, String(path))],
    ]);
  });
  expect(config.compilerOptions.paths).toEqual(Object.fromEntries(exported));
});

describe.each(Object.keys(contents))("the package of %s", (name) => {
  const { root, files, manifest } = unpack(name);
  const modules = files.filter((file) => file.endsWith(".js") && !/^(assets|images)\//.test(file));

  test("has what belongs to it, and nothing else", () => {
    for (const file of texts) expect(files).toContain(file);
    const belongs = [...texts, ...(contents[name] ?? [])];
    const own = files.filter((file) => !(name === "infra" && file.startsWith("images/")));
    expect(own.filter((file) => !belongs.some((glob) => matchesGlob(file, glob)))).toEqual([]);
    expect(own.filter((file) => /^(test|node_modules|data)\/|tsconfig|\.env|\.test\./.test(file))).toEqual([]);
  });

  test("says what it is, where its source is, and what it needs", () => {
    expect(manifest).toMatchObject({
      name: name === "tiltyard" ? name : `@tiltyard/${name}`,
      version,
      license: "Apache-2.0",
      type: "module",
      engines: { node: ">=22.19" },
      repository: { url: "git+https://github.com/example/tiltyard.git", directory: name },
    });
    expect(manifest).not.toHaveProperty("private");
    expect(manifest).not.toHaveProperty("scripts");
    expect(manifest).not.toHaveProperty("devDependencies");
  });

  test("has each file that it exports, and each module that its modules import", () => {
    const exported = Object.values<string | Record<string, string>>({ ...manifest.exports, ...manifest.bin });
    const named = exported.flatMap((each) => (typeof each === "string" ? [each] : Object.values(each)));
    expect(named.length).toBeGreaterThan(0);
    const imported = modules.flatMap((file) =>
      importsOf(join(root, file)).flatMap((each) => (each.startsWith(".") ? [posix.join(dirname(file), each)] : [])),
    );
    const wanted = [...named.map((path) => posix.normalize(path)), ...imported];
    expect(wanted.filter((file) => !files.includes(file))).toEqual([]);
  });

  test("depends on the packages that its modules import, and on no others", () => {
    const known = { ...manifest.dependencies, ...manifest.optionalDependencies, ...manifest.peerDependencies };
    // A checkout alone bundles the console.
    const run = modules.filter((file) => `${name}/${file}` !== "console/bundle.js");
    const imported = run.flatMap((file) => importsOf(join(root, file)));
    const used = imported.filter((each) => !/^(\.|node:)/.test(each)).map(packageOf);
    // A program imports the entry of its own package by name.
    const missing = [...new Set(used)].filter((each) => each !== manifest.name && known[each] === undefined);
    expect(missing).toEqual([]);
    const own = Object.entries(known).filter(([each]) => each.startsWith("@tiltyard/"));
    expect(own.filter(([, wanted]) => wanted !== `^${version}`)).toEqual([]);
  });

  test("has maps that show the sources", () => {
    for (const file of files.filter((each) => each.endsWith(".js.map"))) {
      const { sources, sourcesContent } = JSON.parse(readFileSync(join(root, file), "utf8"));
      expect([sources.length, sourcesContent?.length]).toEqual([1, 1]);
    }
    for (const file of modules) expect(readFileSync(join(root, file), "utf8")).toContain("//# sourceMappingURL=");
  });
});

test("the console, the protocol and the runner contain the files that they read", () => {
  expect(unpack("console").files).toEqual(
    expect.arrayContaining(
      ["index.html", "main.js", "issuer.js", "theme.js", "console.css", "swagger-ui-bundle.js"].map(
        (file) => `assets/${file}`,
      ),
    ),
  );
  expect(unpack("protocol").files).toContain("api-document/examples.json");
  const job = sourceFiles("runner", ["job/tiltyard/**/*.py", "job/requirements.txt"]);
  expect(job).toContain("job/tiltyard/job/__main__.py");
  expect(unpack("runner").files).toEqual(expect.arrayContaining([...job]));
});

test("the components need a cloud's library only for a cluster on it, and bring the sources of the images", () => {
  const { root, manifest } = unpack("infra");
  const clouds = ["@pulumi/aws", "@pulumi/eks", "@pulumi/gcp"];
  expect(Object.keys(manifest.dependencies).filter((name) => clouds.includes(name))).toEqual([]);
  expect(Object.keys(manifest.peerDependencies)).toEqual(clouds);
  expect(manifest.peerDependenciesMeta).toEqual(Object.fromEntries(clouds.map((name) => [name, { optional: true }])));
  for (const { sources } of [catalogImage, rayImage]) {
    const files = sourceFiles(process.cwd(), sources);
    expect(files.length).toBeGreaterThan(3);
    expect(sourceFiles(join(root, "images"), sources)).toEqual(files);
    const isOther = (file: string) => !readFileSync(join(root, "images", file)).equals(readFileSync(file));
    expect(files.filter(isOther)).toEqual([]);
  }
});

test("the wheel has the modules, their types and the licence, and nothing else", () => {
  const wheel = join(packages, `tiltyard-${version}-py3-none-any.whl`);
  const listed = read(
    "python3",
    ["-c", `import zipfile; print(*zipfile.ZipFile(${JSON.stringify(wheel)}).namelist(), sep="\\n")`],
    "python3",
  );
  const files = listed.split("\n");
  const info = ["METADATA", "RECORD", "WHEEL", "licenses/LICENSE"].map(
    (file) => `tiltyard-${version}.dist-info/${file}`,
  );
  expect(files).toEqual(
    expect.arrayContaining([...info, "tiltyard/__init__.py", "tiltyard/py.typed", "tiltyard/job/__main__.py"]),
  );
  const belongs = (file: string) => info.includes(file) || /^tiltyard\/.*(\.py|py\.typed)$/.test(file);
  expect(files.filter((file) => !belongs(file))).toEqual([]);
});

test("the source distribution has the sources of the wheel", () => {
  const listed = read("tar", ["tzf", join(packages, `tiltyard-${version}.tar.gz`)], "tar");
  const files = listed.split("\n").map((file) => file.slice(`tiltyard-${version}/`.length));
  expect(files).toEqual(expect.arrayContaining(["pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"]));
  const belongs =
    /^(tiltyard\/.*(\.py|py\.typed)|pyproject\.toml|README\.md|LICENSE|CHANGELOG\.md|PKG-INFO|\.gitignore)$/;
  expect(files.filter((file) => !belongs.test(file))).toEqual([]);
});

function importsOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  return [...text.matchAll(/^(?:import|export)[^;'"]* from "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm)].map(
    ([, ...found]) => found.find((each) => each !== undefined) ?? "",
  );
}

function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

test("the package of the command installs the catalog and the runner", () => {
  expect(Object.keys(unpack("tiltyard").manifest.dependencies)).toEqual(
    ["client", "protocol", "runner", "service"].map((name) => `@tiltyard/${name}`),
  );
});
