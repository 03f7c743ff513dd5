import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createRayFolder, removeOrphanedRays, removeRayFolder } from "../../client/ray/ray-folder.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Changes the owner of a folder to one that has ended. */
function orphan(folder: string, changes: object = { pid: 2 ** 22 + 1 }): void {
  const file = join(folder, "tiltyard-owner.json");
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...changes }));
}

test("the folder of a Ray whose owner died is deleted, with the processes in it and those that name it", async () => {
  const parent = temporaryFolder("rays");
  const folder = await createRayFolder(parent);
  await mkdir(join(folder, "session"));
  const inside = spawn("sleep", ["300"], { cwd: join(folder, "session") });
  const naming = spawn(process.execPath, ["-e", "setTimeout(() => {}, 300_000)", "--", `--temp-dir=${folder}`]);
  const other = spawn(process.execPath, ["-e", "setTimeout(() => {}, 300_000)", "--", `--temp-dir=${folder}x`]);
  orphan(folder);
  const ends = Promise.all([once(inside, "exit"), once(naming, "exit")]);
  await removeOrphanedRays(parent);
  await ends;
  expect([existsSync(folder), other.exitCode, other.signalCode]).toEqual([false, null, null]);
  other.kill();
});

test.each([
  ["lives", {}, true],
  ["is on another host", { host: "elsewhere", pid: 1 }, true],
  ["had the number of a process that lives", { start: "1" }, false],
])("the folder of a Ray whose owner %s is kept: %o %s", async (_, changes, isKept) => {
  const parent = temporaryFolder("rays");
  const folder = await createRayFolder(parent);
  orphan(folder, changes);
  await mkdir(join(parent, "ray-of-others"));
  await removeOrphanedRays(parent);
  expect([existsSync(folder), existsSync(join(parent, "ray-of-others"))]).toEqual([isKept, true]);
  await removeRayFolder(folder);
  expect(existsSync(folder)).toBe(false);
});
