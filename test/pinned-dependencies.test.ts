/** Every program that others wrote and that the project downloads has an exact version. npm's are in the lockfile. */
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Returns what a pattern finds in the files, without what is exact. */
function looseIn(files: readonly string[], pattern: RegExp, exact: RegExp): string[] {
  expect(files).not.toEqual([]);
  const found = files.flatMap((file) => [...readFileSync(file, "utf8").matchAll(pattern)].map(([, name = ""]) => name));
  expect(found).not.toEqual([]);
  return found.filter((name) => !exact.test(name));
}

test("pins all actions of the workflows by commits", () => {
  const workflows = globSync(".github/workflows/*.yml");
  expect(looseIn(workflows, /uses: (\S+)/g, /@[0-9a-f]{40}$/)).toEqual(["./.github/workflows/ci.yml"]);
});

test("pins all packages of PyPI by versions", () => {
  const files = globSync(["runner/**/*.txt", "test/**/{requirements,constraints}.txt"], {
    exclude: (name) => name === "node_modules",
  });
  expect(looseIn(files, /^([^#\s].*)$/gm, /^[\w.-]+(\[[\w,-]+\])?==[\w.]+( \\)?$/)).toEqual([]);
});

test("pins the base images by versions, and the catalog's also by its digest", () => {
  const files = globSync("Dockerfile*", { exclude: (name) => name.endsWith(".dockerignore") });
  const stage = /^(packages|for-\$\{TARGETARCH\})$/;
  const version = /^(node:\d+\.\d+\.\d+-[a-z-]+@sha256:[0-9a-f]{64}$|rayproject\/ray:\$\{RAY_VERSION\}-)/;
  const loose = looseIn(files, /^FROM (\S+)/gm, new RegExp(`${stage.source}|${version.source}`));
  expect(loose).toEqual([]);
  expect(readFileSync("Dockerfile.ray", "utf8")).toMatch(/^ARG RAY_VERSION=\d+\.\d+\.\d+$/m);
});
