/** `npm test` as a process. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { childrenOf, startProgram } from "./support/process.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

/** The shell of the checks, npm in it, and Vitest. */
const descendantsMin = 3;

function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("ends what it has started when it is told to end", async () => {
  const { child, finished } = startProgram(["test/run.ts", "test/no-such-test"]);
  const descendants = () => descendantsOf(child.pid ?? Number.NaN);
  await expect.poll(() => descendants().length).toBeGreaterThanOrEqual(descendantsMin);
  const started = descendants();
  child.kill("SIGTERM");
  // It waits for both.
  expect((await finished).code).toBe(1);
  await expect.poll(() => started.filter(isRunning)).toEqual([]);
});

test("fails when there is no Vitest, and waits for the checks", async () => {
  const folder = temporaryFolder("tiltyard-run-");
  writeFileSync(join(folder, "npm"), "#!/bin/sh\necho checked\n", { mode: 0o755 });
  const { code, stdout, stderr } = await startProgram(["test/run.ts"], { PATH: folder }).finished;
  expect({ code, stdout }).toEqual({ code: 1, stdout: "checked\n" });
  expect(stderr).toContain("spawn vitest ENOENT");
  expect(stderr).not.toContain("    at ");
});
