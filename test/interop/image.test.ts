/**
 * Tests the Dockerfile without Docker: its files are copied, its commands are run, and its program is started. Only its
 * base, the rights of its user and its file system are excluded; test/infra/dockerfile.test.ts checks them.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Instruction, imageCommand, imageEnvironment, readDockerfile } from "../support/dockerfile.ts";
import { startProgram } from "../support/process.ts";
import { arrowStream, films } from "../support/rows.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("the programs that the image installs serve a catalog with its rows", { timeout: 300_000 }, async () => {
  const built = new Map<string, string>();
  const all = stages();
  for (const stage of all) {
    const [base = "", , name = "image"] = stage[0]?.rest.split(" ") ?? [];
    const folder = temporaryFolder("tiltyard stage ");
    const before = built.get(base);
    if (before !== undefined) cpSync(before, folder, { recursive: true, verbatimSymlinks: true });
    built.set(name, folder);
    copy(stage, folder, built);
    // The last stage only prepares a folder of its user.
    if (name !== "image") for (const { rest } of named(stage, "RUN")) execute(rest, folder);
  }
  const catalog = all.at(-1) ?? [];
  const app = built.get("image") ?? "";

  const { options, program } = imageCommand();
  const key = "key-of-the-image-0123456789";
  const service = startProgram([...options, join(app, program), ...words(catalog, "CMD")], {
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

/** Returns the instructions of each stage, of which the last is the image. */
function stages(): Instruction[][] {
  const found: Instruction[][] = [];
  for (const instruction of readDockerfile())
    if (instruction.name === "FROM") found.push([instruction]);
    else found.at(-1)?.push(instruction);
  return found;
}

function execute(command: string, cwd: string): void {
  const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter);
  // The command must not clean npm's cache of this machine.
  const kept = command.replace("&& npm cache clean --force", "");
  execFileSync("sh", ["-c", kept], { cwd, env: { ...process.env, PATH }, stdio: "pipe" });
}

function named(stage: readonly Instruction[], name: string): Instruction[] {
  return stage.filter((each) => each.name === name);
}

/** Copies files of the project, except for those that .dockerignore excludes everywhere, and of earlier stages. */
function copy(stage: readonly Instruction[], to: string, built: ReadonlyMap<string, string>): void {
  for (const { rest } of named(stage, "COPY")) {
    const [, from, copied = rest] = /^--from=(\w+) (.*)$/.exec(rest) ?? [];
    const paths = copied.split(" ");
    const target = join(to, paths.pop() ?? "");
    mkdirSync(target, { recursive: true });
    for (const path of paths) {
      const isFile = basename(path).includes(".");
      const source = from === undefined ? path : join(built.get(from) ?? "", path.replace(/^\/app/, "."));
      cpSync(source, isFile ? join(target, basename(path)) : target, {
        recursive: true,
        verbatimSymlinks: true,
        filter: (each) => from !== undefined || !each.endsWith("node_modules"),
      });
    }
  }
}

function words(stage: readonly Instruction[], name: string): string[] {
  return JSON.parse(named(stage, name)[0]?.rest ?? "[]");
}
