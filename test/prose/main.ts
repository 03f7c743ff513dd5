/**
 * Checks the prose of the project with textlint, as part of `npm run check`: Markdown files, and the comments,
 * test titles, error messages and console texts of source files. The rules are in rules.ts, CONTRIBUTING.md explains them. Arguments are paths; the default is all
 * files.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { problemsOf } from "./rules.ts";

const root = join(import.meta.dirname, "../..");
const types = ["ts", "tsx", "js", "md", "py", "yaml"];
/** These files contain the rejected words. */
const excluded = ["test/prose/"];

/** Returns all tracked and new files; in a tarball, all files. */
function textFiles(): readonly string[] {
  const patterns = types.map((type) => `*.${type}`);
  const git = spawnSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", ...patterns], {
    cwd: root,
    encoding: "utf8",
  });
  const listed = git.status === 0 ? git.stdout.split("\0").filter((path) => path !== "") : [];
  if (listed.length > 0) return listed;
  return globSync(`**/*.{${types.join(",")}}`, { cwd: root, exclude: ["**/node_modules", "**/.*/**", "data"] });
}

// A tracked file may be deleted before the commit.
const isRead = (path: string) => !excluded.some((start) => path.startsWith(start)) && existsSync(join(root, path));
const paths = process.argv.length > 2 ? process.argv.slice(2) : textFiles();
const problems: string[] = [];
for (const path of paths.filter(isRead))
  problems.push(...(await problemsOf(path, readFileSync(join(root, path), "utf8"))));
if (problems.length > 0) {
  process.stderr.write(
    `${problems.join("\n")}\n${problems.length} problems. "Words" in CONTRIBUTING.md has the rules.\n`,
  );
  process.exitCode = 1;
}
