import { expect, test } from "vitest";
import { Companion } from "../../client/ray/companion.ts";

test.each([
  ["exit 3", "exit code 3"],
  ["kill -9 $$", "SIGKILL"],
])("reports how the program %s ended", async (script, ending) => {
  await using companion = new Companion(["sh", "-c", script], process.env);
  await expect.poll(() => companion.hasEnded).toBe(true);
  expect(companion.ending).toBe(ending);
});
