import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join, resolve } from "node:path";
import { expect, test } from "vitest";
import { runCommandLine } from "../../runner/command-line.ts";
import { readConfig } from "../../runner/config.ts";
import { startAttempt } from "../support/attempts.ts";
import { useCatalog } from "../support/catalog.ts";
import { startCommand } from "../support/command.ts";
import { startProgram } from "../support/process.ts";
import { startTestDashboard } from "../support/ray-dashboard.ts";
import { createFilms } from "../support/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

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

test.each([
  [["--address", "ray.example.com"], "the URL of Ray's dashboard must begin with http:// or https:// and a host"],
  [["--stack-outputs", resolve("runner/package.json")], "these are not the outputs of a Tiltyard stack:"],
  [["--file", "missing.yaml"], "cannot read missing.yaml: ENOENT"],
  [["--file", resolve("runner/package.json")], "the file of the runner is not valid:\n  rayClusters: "],
])("exits with 2 for an invalid URL or file: %j", async (args, problem) => {
  const { finished } = startProgram(["runner/main.ts", ...args], { TILTYARD_API_KEY: "key" });
  expect(await finished).toMatchObject({ code: 2, stderr: expect.stringContaining(problem) });
});

test.each([
  ["--local", "--address", "http://127.0.0.1:8265"],
  ["--local", "--file", "runner.yaml"],
  ["--address", "http://127.0.0.1:8265", "--queue", "ray"],
])("refuses options of different places of Ray: %s %s %s %s", async (...args) => {
  expect(await startCommand(runCommandLine, args).finished).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("cannot be used with option"),
  });
});

test("treats an empty variable as unset", () => {
  expect(readConfig({ RAY_AUTH_TOKEN: "" })).toMatchObject({ rayToken: undefined });
});

test("calls the catalog at the port of TILTYARD_PORT", async () => {
  const dashboard = await startTestDashboard();
  try {
    const args = ["runner/main.ts", "--address", dashboard.url];
    const { child, printed, finished } = startProgram(args, { TILTYARD_API_KEY: "key", TILTYARD_PORT: "2" });
    expect(await printed("ListJobs")).toContain("no Tiltyard catalog answers at http://127.0.0.1:2:");
    child.kill("SIGTERM");
    await finished;
  } finally {
    await dashboard.stop();
  }
});

test("sends the development key of its folder to no other machine", async () => {
  const folder = temporaryFolder("tiltyard runner ");
  mkdirSync(join(folder, "data"));
  writeFileSync(join(folder, "data", "development.key"), "a-development-key");
  const args = [resolve("runner/main.ts"), "--local", "--url", "https://catalog.example.com"];
  expect(await startProgram(args, {}, { folder }).finished).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("set TILTYARD_API_KEY"),
  });
});

test("exits within 10 seconds of SIGTERM while the catalog does not respond", async () => {
  const dashboard = await startTestDashboard();
  const catalog = createServer(() => {}).listen(0, "127.0.0.1");
  try {
    await once(catalog, "listening");
    const url = `http://127.0.0.1:${(catalog.address() as AddressInfo).port}`;
    const asked = once(catalog, "request");
    const args = ["runner/main.ts", "--address", dashboard.url, "--url", url];
    const { child, finished } = startProgram(args, { TILTYARD_API_KEY: "key" });
    await asked;
    const stoppedAt = performance.now();
    child.kill("SIGTERM");
    expect(await finished).toMatchObject({ code: 0, signal: null });
    expect(performance.now() - stoppedAt).toBeLessThan(10_000);
  } finally {
    catalog.closeAllConnections();
    catalog.close();
    await dashboard.stop();
  }
});

const catalog = useCatalog();

/** Creates a folder with a program `ray` whose dashboard is at the port of another one. */
function imitateRay(dashboardPort: number): string {
  const folder = temporaryFolder("ray");
  const program = `#!${process.execPath}
    const { connect, createServer } = require("node:net");
    const port = process.argv.find((each) => each.startsWith("--dashboard-port="))?.split("=")[1];
    if (port === undefined) console.log("ray, version 2.60.0");
    else createServer((socket) => {
      const dashboard = connect(${dashboardPort}, "127.0.0.1");
      for (const each of [socket, dashboard]) each.on("error", () => {});
      socket.pipe(dashboard).pipe(socket);
    }).listen(Number(port), "127.0.0.1");`;
  writeFileSync(join(folder, "ray"), program);
  chmodSync(join(folder, "ray"), 0o755);
  return folder;
}

test("hands the attempts on its own Ray over to the next runner when it stops", async () => {
  const dashboard = await startTestDashboard();
  try {
    dashboard.script = () => ({ logs: [""], statuses: ["RUNNING"] });
    const { job_id } = (await catalog.call("compactTable", { id: await createFilms(catalog) })).body;
    const args = ["runner/main.ts", "--local", "--standby-minutes", "0", "--url", catalog.url];
    const { child, printed, finished } = startProgram(args, {
      TILTYARD_API_KEY: await catalog.keyFor("runner", { $: "runner" }),
      PATH: [imitateRay(dashboard.port), process.env.PATH].join(delimiter),
    });
    await printed("attempt 1");
    await startAttempt(catalog, job_id);
    child.kill("SIGTERM");
    expect(await finished).toMatchObject({ code: 0, signal: null });
    const { job } = (await catalog.call("describeJob", { id: job_id.split("$") })).body;
    expect(job).toMatchObject({ status: "Running", attempt: 1, interruptions: 1, reason: "the runner stopped" });
  } finally {
    await dashboard.stop();
  }
});

test("logs one line about a job without what controls a terminal, whatever its platform reports", async () => {
  const dashboard = await startTestDashboard();
  try {
    const message = "\u001b]0;title\u0007failed\nLast 9 lines of stdout:\njob other: it is forged";
    dashboard.script = () => ({ logs: [""], statuses: ["FAILED"], message });
    await catalog.call("compactTable", { id: await createFilms(catalog) });
    const args = ["runner/main.ts", "--address", dashboard.url, "--attempts", "1", "--url", catalog.url];
    const { child, printed, finished } = startProgram(args, {
      TILTYARD_API_KEY: await catalog.keyFor("runner", { $: "runner" }),
    });
    await printed("title");
    child.kill("SIGTERM");
    const { stderr } = await finished;
    expect(stderr).toContain("\\u001b]0;title\\u0007failed\\njob other: it is forged");
    expect(stderr).not.toMatch(/^job other/m);
  } finally {
    await dashboard.stop();
  }
});
