import { globSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";

const sources = globSync("{protocol,service,infra,client,runner}/**/*.ts", { exclude: ["**/node_modules/**"] });

/** What a file imports, statically or when it is needed. */
function importsOf(file: string): string[] {
  return importsIn(readFileSync(file, "utf8"));
}

/** What a file loads. `import type` loads nothing: types of two files may refer to each other, as their values may not. */
function loadedBy(file: string): string[] {
  return importsIn(readFileSync(file, "utf8").replaceAll(/^(import|export) type [^;]+;$/gm, ""));
}

function importsIn(text: string): string[] {
  return [...text.matchAll(/(?:from\s|import\()\s*"([^"]+)"/g)].map(([, specifier]) => specifier ?? "");
}

/** The files below a folder that import what the pattern names. */
function importers(of: RegExp, below = ""): string[] {
  return sources.filter((file) => file.startsWith(below) && importsOf(file).some((each) => of.test(each)));
}

describe("the layers", () => {
  test("are found at all", () => {
    expect(sources.length).toBeGreaterThan(60);
    expect(importers(/^hono/).length).toBeGreaterThan(3);
  });

  test("point one way: the protocol knows nothing of the service", () => {
    expect(importers(/service|^hono|^node:|kysely|pulumi/, "protocol/")).toEqual([]);
  });

  test.each([
    ["protocol/", /^@tiltyard|^hono|^@?pulumi/],
    ["infra/", /^@tiltyard\/(?!protocol$)|^hono/],
    ["service/", /^@tiltyard\/(?!protocol$)|^@pulumi|^@kubernetes/],
    ["client/", /^@tiltyard\/(?!protocol$)|^@pulumi|^hono/],
    // The runner is a user of the client's library.
    ["runner/", /^@tiltyard\/(?!(protocol|client)$)|^@pulumi|^hono/],
  ])("keep the programs apart: %s has nothing of another but the protocol", (folder, others) => {
    const isForeign = (file: string, imported: string) =>
      imported.startsWith(".") ? !join(dirname(file), imported).startsWith(folder) : others.test(imported);
    const own = sources.filter((file) => file.startsWith(folder));
    expect(own.filter((file) => importsOf(file).some((each) => isForeign(file, each)))).toEqual([]);
  });

  test.each([
    ["Hono", /^(hono|@hono\/)/, /^service\/(http\/|start\.ts)/],
    ["SQL", /^(kysely|better-sqlite3|pg)/, /^service\/store\//],
    ["object stores", /^(@aws-sdk\/client-s3|@google-cloud)/, /^service\/storage\//],
    [
      "clouds and their credentials",
      /^(@aws-sdk\/client-(eks|sts)|google-auth-library)/,
      /^(client\/kubernetes|service\/storage)\//,
    ],
    [
      "Lance's library",
      /^(@lancedb\/|apache-arrow)/,
      /^service\/(dataset\/|operations\/(create-table-index|list-table-indices)\.ts)/,
    ],
    ["tokens", /^jose$/, /^service\/auth\//],
    ["Pulumi", /^@pulumi\//, /^infra\//],
  ])("keep %s in one place", (_, module, place) => {
    expect(importers(module).filter((file) => !place.test(file))).toEqual([]);
  });

  test.each([
    ["service/dataset/", /\/(automation|operations|http|commands)\//],
    ["service/refs/", /\/(operations|http|commands|dataset)\//],
    ["service/dropping/", /\/(operations|http|commands|dataset|refs)\//],
    ["service/commits/", /\/(operations|http|commands|dataset|refs|dropping)\//],
    ["service/domain/", /\/(operations|http|commands|dataset|refs|dropping|commits)\//],
    ["service/tasks/", /\/(operations|http|commands|dataset|refs|dropping|commits|domain|storage|auth)\//],
    ["service/store/", /\/(operations|http|commands|dataset|refs|dropping|commits|domain|tasks|storage|auth)\//],
    ["service/storage/", /\/(operations|http|commands|dataset|refs|dropping|commits|domain|tasks|store|auth)\//],
    ["service/automation/", /\/(operations|remote|http|commands)\//],
    ["service/operations/", /\/(remote|http|commands)\//],
    ["service/remote/", /\/(http|commands)\//],
  ])("let %s use only what is below it", (folder, above) => {
    expect(importers(above, folder)).toEqual([]);
  });

  test("has no circle of imports", () => {
    const circles: string[][] = [];
    const done = new Set<string>();
    const visit = (file: string, way: readonly string[]) => {
      if (way.includes(file)) return void circles.push([...way.slice(way.indexOf(file)), file]);
      if (done.has(file)) return;
      for (const each of loadedBy(file)) if (each.startsWith(".")) visit(join(dirname(file), each), [...way, file]);
      done.add(file);
    };
    for (const file of sources) visit(file, []);
    expect(circles).toEqual([]);
    expect(done.size).toBe(sources.length);
  });

  test("load the driver of PostgreSQL and Lance's library only when they are needed", () => {
    const reached = new Set<string>();
    const visit = (file: string) => {
      if (reached.has(file)) return;
      reached.add(file);
      // A type that is imported loads nothing.
      const text = readFileSync(file, "utf8").replaceAll(/import type [^;]+;/g, "");
      for (const [, specifier = ""] of text.matchAll(/from\s*"([^"]+)"/g))
        if (specifier.startsWith(".")) visit(join(dirname(file), specifier));
        else expect([file, ["pg", "@lancedb/lancedb", "apache-arrow"].includes(specifier)]).toEqual([file, false]);
    };
    visit("service/command-line.ts");
    expect(reached).toContain("service/store/open.ts");
    expect(importers(/^pg$/).length).toBeGreaterThan(0);
  });

  test("name the files that they import as Node finds them", () => {
    const all = globSync("{*,{protocol,service,infra,client,runner,tiltyard,packaging,examples,test}/**/*}.{ts,js}", {
      exclude: ["**/node_modules/**"],
    });
    const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
    // What the service serves to the console and has no file of its own has its types beside it.
    const isFound = (path: string) => isFile(path) || isFile(path.replace(/\.js$/, ".d.ts"));
    const missing = all.flatMap((file) =>
      importsOf(file)
        .filter((each) => /^\.\.?\//.test(each) && !isFound(join(dirname(file), each)))
        .map((each) => `${file}: ${each}`),
    );
    expect(missing).toEqual([]);
  });

  test("have tests make their temporary folders in one place, which removes them", () => {
    const makers = globSync("test/**/*.ts").filter((file) => /\bmkdtemp|"\/tmp\b/.test(readFileSync(file, "utf8")));
    const own = ["test/architecture.test.ts", "test/bench/folder.ts", "test/support/temporary-folder.ts"];
    expect(makers.filter((file) => !own.includes(file))).toEqual([]);
  });

  test("hand the environment to the settings and to commands, and to nothing else", () => {
    const readers = sources.filter((file) => readFileSync(file, "utf8").includes("process.env"));
    expect(readers.length).toBeGreaterThan(0);
    // A library's own variable gets its default before the library reads it.
    const allowed =
      /readConfig\(process\.env\)|process\.env\.(LANCEDB_LOG|LANCE_DEFAULT_IO_BUFFER_SIZE|UV_THREADPOOL_SIZE) \?\?=/g;
    for (const file of readers.filter((each) => !each.startsWith("client/commands/")))
      expect(readFileSync(file, "utf8").replaceAll(allowed, "")).not.toContain("process.env");
  });
});
