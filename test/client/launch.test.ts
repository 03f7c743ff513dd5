/** Tests of the start and the end of programs. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { startProgram } from "../support/process.ts";
import { startTestDashboard } from "../support/ray-dashboard.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const olderNode = (version: string) =>
  `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"${version}"}})`;

test.each(["tiltyard/bin.js", "service/bin.js", "runner/bin.js"])(
  "%s ends with one sentence under an old Node",
  async (bin) => {
    const { code, stdout, stderr } = await startProgram(["--import", olderNode("20.19.0"), bin, "--version"]).finished;
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toBe(
      "Tiltyard needs Node 24.0 or later, and this is Node 20.19.0: run it with npx in the clone, or install a newer one from https://nodejs.org\n",
    );
  },
);

test.each(["tiltyard/bin.js", "service/bin.js", "runner/bin.js"])("%s is the program of its package", async (bin) => {
  const manifest = JSON.parse(readFileSync(join(bin, "../package.json"), "utf8"));
  expect(Object.values(manifest.bin)).toEqual(["./bin.js"]);
  expect(await startProgram([bin, "--version"]).finished).toMatchObject({ code: 0, stdout: `${manifest.version}\n` });
});

/**
 * Starts a program as the child of a shell, like npm, and terminates the shell with SIGTERM. Resolves when the last
 * process has exited and thus closed the output.
 */
async function endShell(args: string, started: string, settings: Readonly<Record<string, string>>): Promise<void> {
  const shell = `${JSON.stringify(process.execPath)} ${resolve("tiltyard/bin.js")} ${args}; true`;
  await endParent("sh", ["-c", shell], started, { npm_command: "exec", ...settings });
}

/** Starts a program, terminates it with SIGTERM, and waits until its last descendant has closed the output. */
async function endParent(
  command: string,
  args: readonly string[],
  started: string,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const parent = `const child = require("node:child_process")
    .spawn(${JSON.stringify(command)}, ${JSON.stringify(args)}, { stdio: "inherit" });
    process.on("SIGTERM", () => child.kill("SIGTERM"));`;
  const program = startProgram(["--eval", parent], settings);
  await program.printed(started);
  program.child.kill("SIGTERM");
  await program.finished;
}

test("npm start serves the catalog and ends in order when npm ends", async () => {
  const folder = temporaryFolder("tiltyard launch ");
  const settings = { TILTYARD_DATA_DIR: folder, TILTYARD_PORT: "0" };
  await endParent("npm", ["start", "--prefix", resolve(".")], "curl", settings);
  // SQLite deletes its log when it closes the database.
  expect([existsSync(join(folder, "catalog.sqlite")), existsSync(join(folder, "catalog.sqlite-wal"))]).toEqual([
    true,
    false,
  ]);
});

test("watching a job ends when npm, its parent, ends", async () => {
  const settings = { TILTYARD_CATALOG_URL: "http://127.0.0.1:1", TILTYARD_API_KEY: "a-key-of-24-characters-x" };
  await endShell("jobs watch 1", "the catalog does not respond", settings);
});

test("the runner ends when npm, its parent, ends", async () => {
  const ray = await startTestDashboard();
  const settings = { TILTYARD_CATALOG_URL: "http://127.0.0.1:1", TILTYARD_API_KEY: "a-key-of-24-characters-x" };
  await endShell(
    `runner --address ${ray.url}`,
    "running the jobs of http://127.0.0.1:1, from TILTYARD_CATALOG_URL",
    settings,
  );
  await ray.stop();
});
