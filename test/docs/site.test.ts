/** Tests the site that VitePress builds from docs/. */
import { appendFileSync, cpSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { type Followed, runScript, strangersEnvironment } from "../packages/stranger.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Builds the site of a copy of the pages. */
async function build(change: (folder: string) => void = () => {}): Promise<Followed & { readonly folder: string }> {
  const folder = temporaryFolder("tiltyard site ");
  cpSync("docs", join(folder, "docs"), { recursive: true, filter: (path) => !/\.vitepress\/(cache|dist)/.test(path) });
  cpSync("package.json", join(folder, "package.json"));
  change(join(folder, "docs"));
  return { ...(await runScript("npm run docs", folder, strangersEnvironment(24))), folder };
}

let built: Awaited<ReturnType<typeof build>>;
beforeAll(async () => {
  built = await build();
});
const pageOf = (name: string) => readFileSync(join(built.folder, "docs/.vitepress/dist", name), "utf8");

test("npm run docs builds a page for each document, with an index for searching", () => {
  expect([built.code, built.stderr]).toEqual([0, expect.not.stringContaining("dead link")]);
  for (const file of readdirSync("docs", { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".md")))
    expect(pageOf(file.replace(/README\.md$/, "index.md").replace(/\.md$/, ".html"))).toContain("Tiltyard");
  const chunks = readdirSync(join(built.folder, "docs/.vitepress/dist/assets/chunks"));
  expect(chunks.filter((file) => file.startsWith("@localSearchIndex"))).toHaveLength(1);
});

test("the sidebar leads to the pages of each folder", () => {
  for (const link of ["/get-started/tour", "/clients/duckdb", "/reference/cli", "/troubleshooting"])
    expect(pageOf("index.html")).toContain(`href="${link}"`);
});

test("npm run docs fails on a dead link and names it", async () => {
  const { code, stdout, stderr } = await build((folder) =>
    appendFileSync(join(folder, "concepts.md"), "\n[nowhere](reference/nowhere.md)\n"),
  );
  expect(code).not.toBe(0);
  expect(stdout + stderr).toContain("reference/nowhere");
});
