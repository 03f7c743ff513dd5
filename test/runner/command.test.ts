import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runCommandLine } from "../../runner/command-line.ts";
import { readConfig } from "../../runner/config.ts";
import { startCommand } from "../support/command.ts";
import { startProgram } from "../support/process.ts";

test("prints the version of the package for --version", async () => {
  const { version } = JSON.parse(readFileSync("runner/package.json", "utf8"));
  const { finished } = startProgram(["runner/main.ts", "--version"]);
  expect(await finished).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
});

test.each([["--nonsense"], ["extra"], ["--max-jobs", "0"]])(
  "exits with 2 for a wrong command line: %s",
  async (...args) => {
    expect(await startCommand(runCommandLine, args).finished).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^error: /),
    });
  },
);

test("treats an empty variable as unset", () => {
  const environment = { TILTYARD_CATALOG_URL: "", TILTYARD_API_KEY: "", RAY_AUTH_TOKEN: "" };
  const none = { catalogUrl: undefined, apiKey: undefined, rayToken: undefined };
  expect(readConfig(environment)).toMatchObject(none);
});
