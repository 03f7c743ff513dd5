/**
 * Tests the Dockerfile without Docker: its files are copied, its commands are run, and its program is started. Only its
 * base, the rights of its user and its file system are excluded; test/infra/dockerfile.test.ts checks them.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Instruction, imageEnvironment, readDockerfile } from "../support/dockerfile.ts";
import { startProgram } from "../support/process.ts";
import { arrowStream, films } from "../support/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("what the image installs and starts serves a catalog, its rows included", { timeout: 300_000 }, async () => {
  const [packages, catalog] = stages();
  const [built, app] = [temporaryFolder("tiltyard packages "), temporaryFolder("tiltyard app ")];
  copy(packages, built);
  for (const { rest } of named(packages, "RUN")) {
    const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter);
    // The command must not clean npm's cache of this machine.
    const command = rest.replace("&& npm cache clean --force", "");
    execFileSync("sh", ["-c", command], { cwd: built, env: { ...process.env, PATH }, stdio: "pipe" });
  }
  cpSync(built, app, { recursive: true, verbatimSymlinks: true });
  copy(catalog, app);

  const [node, script = "", ...args] = [...words(catalog, "ENTRYPOINT"), ...words(catalog, "CMD")];
  expect(node).toBe("node");
  const key = "key-of-the-image-0123456789";
  const service = startProgram([join(app, script), ...args], {
    ...imageEnvironment(),
    TILTYARD_HOST: "127.0.0.1",
    TILTYARD_PORT: "0",
    TILTYARD_DATA_DIR: temporaryFolder("tiltyard data "),
    TILTYARD_BOOTSTRAP_API_KEY: key,
  });
  onTestFinished(async () => {
    service.child.kill();
    await service.finished;
  });
  const url = /http:\/\/[\d.:]+/.exec(await service.printed("http://"))?.[0];

  expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  const created = await fetch(`${url}/v1/table/films/create`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/vnd.apache.arrow.stream" },
    body: arrowStream(films),
  });
  expect([created.status, await created.json()]).toEqual([200, expect.objectContaining({ version: 1 })]);
});

/** Returns the instructions of the stage that installs and of the final image. */
function stages(): readonly [Instruction[], Instruction[]] {
  const instructions = readDockerfile();
  const second = instructions.findLastIndex(({ name }) => name === "FROM");
  return [instructions.slice(0, second), instructions.slice(second)];
}

function named(stage: readonly Instruction[], name: string): Instruction[] {
  return stage.filter((each) => each.name === name);
}

/** Copies files of the project except for those that .dockerignore excludes everywhere. */
function copy(stage: readonly Instruction[], to: string): void {
  for (const { rest } of named(stage, "COPY").filter(({ rest }) => !rest.startsWith("--"))) {
    const paths = rest.split(" ");
    const target = join(to, paths.pop() ?? "");
    mkdirSync(target, { recursive: true });
    for (const path of paths) {
      const isFile = path.includes(".");
      cpSync(path, isFile ? join(target, path.split("/").at(-1) ?? "") : target, {
        recursive: true,
        filter: (source) => !source.endsWith("node_modules"),
      });
    }
  }
}

function words(stage: readonly Instruction[], name: string): string[] {
  return JSON.parse(named(stage, name)[0]?.rest ?? "[]");
}
