import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import getPort from "get-port";
import { beforeAll, describe, expect, test } from "vitest";
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

  // The interop tier follows README and pages over one data/ (test_newcomer.py).
  test("leaves a data/ that npm start serves", async () => {
    const port = await getPort({ host: "127.0.0.1" });
    const url = `http://127.0.0.1:${port}`;
    const script = [
      `TILTYARD_PORT=${port} npm start >catalog.log 2>&1 &`,
      `curl -sf --retry 60 --retry-delay 1 --retry-connrefused ${url}/health/ready`,
      `curl -sf -H "x-api-key: $(cat data/development.key)" -X POST ${url}/v1/table/quickstart_films/count_rows`,
    ].join("\n");
    const { code, stdout, stderr } = await runScript(script, clone, strangersEnvironment(24));
    expect([code, stdout, stderr]).toEqual([0, expect.stringMatching(/1000\s*$/), expect.anything()]);
  });
});
