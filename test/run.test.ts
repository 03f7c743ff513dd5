/** `npm test` as a process. */
import { expect, test } from "vitest";
import { childrenOf, startProgram } from "./support/process.ts";

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
