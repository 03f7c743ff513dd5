import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import getPort from "get-port";
import { beforeAll, describe, expect, test } from "vitest";
import { Progress } from "../../client/commands/output.ts";
import { preparePython } from "../../client/commands/python-environment.ts";
import { runScript, strangersEnvironment } from "../packages/stranger.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { blocksOf } from "./blocks.ts";

const checkout = resolve(import.meta.dirname, "../..");
const [quickstart = "", output = ""] = blocksOf(readFileSync(join(checkout, "README.md"), "utf8")).map(
  ({ text }) => text,
);

/** Copies all files of the project that are not ignored into a new folder, which is then like a fresh clone. */
function cloneProject(): string {
  const clone = temporaryFolder("tiltyard clone ");
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: checkout,
    encoding: "utf8",
  });
  for (const file of listed.split("\0").filter((path) => path !== "" && existsSync(join(checkout, path)))) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    copyFileSync(join(checkout, file), join(clone, file));
  }
  return clone;
}

describe("the README's quickstart", () => {
  let clone = "";
  beforeAll(() => {
    clone = cloneProject();
  });

  test.each([
    ["in a fresh clone", quickstart],
    ["a second time in the same folder", "npm run quickstart"],
  ])("fills a column %s", async (_, command) => {
    const { code, stdout, stderr } = await runScript(command, clone, strangersEnvironment(24));
    expect(code, `${stdout}\n${stderr}`).toBe(0);
    for (const line of output.trimEnd().split("\n").slice(1)) expect(stdout).toContain(line);
    expect(stderr).toMatch(
      /^POST \/v1\/table\/quickstart_films\/backfill_column \{"column": "title_length"\} answered /m,
    );
  });

  // The interop tier also follows the pages about jobs over one data/, because they start Ray (test_newcomer.py).
  test("leaves a data/ over which the tour and two client pages work twice", async () => {
    const port = await getPort({ host: "127.0.0.1" });
    const blocks = (page: string, language: string) =>
      blocksOf(readFileSync(join(clone, "docs", page), "utf8"))
        .filter((block) => block.language === language)
        .map(({ text }) => text.replaceAll("127.0.0.1:2333", `127.0.0.1:${port}`));
    const pages = ["clients/pylance.md", "clients/lancedb.md"];
    // The quickstart's Python has no Geneva, which the last part of the tour uses.
    const [pylance = "", lancedb = ""] = blocks("get-started/tour.md", "python");
    const tour = `${pylance}${lancedb}db.drop_table("tour_films")\n`;
    using progress = new Progress();
    const requirements = join(clone, "runner/job/requirements.txt");
    const python = join(await preparePython(requirements, progress, AbortSignal.timeout(300_000)), "python");
    for (const [index, program] of [tour, ...pages.flatMap((page) => blocks(page, "python"))].entries())
      writeFileSync(join(clone, `page-${index}.py`), program);
    const [curl = ""] = blocks("get-started/tour.md", "sh");
    const script = [
      `TILTYARD_PORT=${port} npm start >catalog.log 2>&1 &`,
      `curl -sf --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:${port}/health/ready`,
      ...[curl, curl],
      'for page in page-*.py page-*.py; do echo "$page"; "$PYTHON" "$page"; done',
    ].join("\n");
    const { code, stdout, stderr } = await runScript(script, clone, { ...strangersEnvironment(24), PYTHON: python });
    expect(code, `${stdout}\n${stderr}`).toBe(0);
    for (const page of pages)
      for (const expected of blocks(page, "text")) expect(stdout.split(expected).length).toBeGreaterThan(2);
    expect(stdout.match(/"status":\d+/g)).toEqual(Array(2).fill('"status":409'));
  });
});
