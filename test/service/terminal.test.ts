import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { useCatalog } from "../support/catalog.ts";
import { startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const catalog = useCatalog();

test("GET / leads browsers to the console, and other clients to an error", async () => {
  const browser = await catalog.fetch("/", { headers: { accept: "text/html,*/*" }, redirect: "manual" });
  expect([browser.status, browser.headers.get("location")]).toEqual([302, "console"]);
  const followed = await catalog.fetch("/", { headers: { accept: "text/html,*/*" } });
  expect([followed.status, followed.url]).toEqual([200, `${catalog.url}/console`]);
  expect((await catalog.fetch("/", { headers: { accept: "application/json" } })).status).toBe(404);
});

/** Starts `serve` with a misspelled setting and stops it. */
const misspelled = () => ({
  TILTYARD_DATA_DIR: temporaryFolder("tiltyard terminal "),
  TILTYARD_PORT: "0",
  TILTYARD_LOGLEVEL: "debug",
  TILTYARD_SOMETHING_ELSE_ENTIRELY: "1",
});

test("serve suggests the setting that a misspelled variable means", async () => {
  const service = startProgram(["service/main.ts", "serve"], misspelled());
  await service.printed("curl");
  service.child.kill("SIGTERM");
  const lines = (await service.finished).stdout.trim().split("\n");
  const messages = lines.map((line): string => JSON.parse(line).msg);
  expect(messages).toContain("TILTYARD_LOGLEVEL is set, but no such setting exists. Did you mean TILTYARD_LOG_LEVEL?");
  expect(messages).toContain("TILTYARD_SOMETHING_ELSE_ENTIRELY is set, but no such setting exists");
});

/** Reports whether `script` of util-linux, which runs a command in a terminal, is available. */
const hasTerminal = process.platform === "linux" && spawnSync("script", ["--version"]).status === 0;

test.runIf(hasTerminal)("serve logs lines for people on a terminal", async () => {
  const { finished } = startProgram(
    [
      "--eval",
      `const { spawn } = require("node:child_process");
       const serve = "exec '" + process.execPath + "' '${resolve("service/main.ts")}' serve";
       const args = ["--quiet", "--return", "--command", serve, "/dev/null"];
       const child = spawn("script", args, { stdio: ["pipe", "pipe", "inherit"] });
       child.stdout.on("data", (text) => {
         process.stdout.write(text);
         if (text.includes("curl")) child.stdin.write("\\u0003");
       });
       child.on("close", () => child.stdin.destroy());`,
    ],
    misspelled(),
  );
  const { stdout } = await finished;
  expect(stdout).toMatch(/\d\d:\d\d:\d\d.* .*WARN .*TILTYARD_LOGLEVEL is set.*Did you mean TILTYARD_LOG_LEVEL\?/);
  expect(stdout).not.toContain('"msg"');
});
