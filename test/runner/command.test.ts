import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { startProgram } from "../support/process.ts";

test("--version prints the version of the package", async () => {
  const { version } = JSON.parse(readFileSync("runner/package.json", "utf8"));
  const { finished } = startProgram(["runner/main.ts", "--version"]);
  expect(await finished).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
});
