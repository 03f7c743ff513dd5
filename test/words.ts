/**
 * Checks the words of the project's text against the list in CONTRIBUTING.md, as part of `npm run check`. It prints
 * each line that contains a word of the list, with its replacement.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const types = ["ts", "js", "md", "py", "yaml"];
/** The parts that are not prose: the UNIX user in quotes, and code in Markdown. */
const nameInQuotes = /(["'`])nobody\1/g;
const codeInMarkdown = /`[^`\n]*`/g;

const instead: readonly (readonly [RegExp, string])[] = [
  [/\b(whoever|whom)\b/i, "the caller, the client, the principal, its holder"],
  [/\b(no|some|any|every)body\b/i, "no client, another client, another process, any principal"],
  [/\b(some|any|every|no )one else\b/i, "no other client, another client"],
  [/\b(some|any|every)one\b/i, "a client, any principal, all clients"],
  [/(?<!\b(users?|people|person|engineers?|operators?) )\bwho\b/i, "the principal that, clients that, its owner"],
  [/\bcom(e|es|ing) to grief\b/i, "fails"],
  [/\bbefalls?\b/i, "happens to, fails"],
  [/\btr(y|ies|ied) anew\b/i, "retry"],
];

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

function problemsOf(path: string): readonly string[] {
  const prose = readFileSync(join(root, path), "utf8").replaceAll(
    path.endsWith(".md") ? codeInMarkdown : nameInQuotes,
    "",
  );
  const lines = prose.split("\n");
  return lines.flatMap((line, index) =>
    instead.flatMap(([word, better]) => {
      const found = word.exec(line)?.[0];
      return found === undefined ? [] : [`${path}:${index + 1}: "${found}": write ${better}`];
    }),
  );
}

// This file itself contains the words. A tracked file may be deleted before the commit.
const isRead = (path: string) => path !== "test/words.ts" && existsSync(join(root, path));
const problems = textFiles().filter(isRead).flatMap(problemsOf);
if (problems.length > 0) {
  process.stderr.write(`${problems.join("\n")}\n"Words" in CONTRIBUTING.md says how the project writes.\n`);
  process.exitCode = 1;
}
