import { execFileSync } from "node:child_process";
import { closeSync, openSync, readdirSync, rmdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stageManifest } from "../support/catalog.ts";
import { post, startCommitter } from "../support/committer.ts";
import { runCatalogCommand } from "../support/process.ts";
import { postRows } from "../support/rows.ts";
import { createServiceProcess, expectKept, expectNothingStaged } from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const diskMiB = 4;
let [disk, elsewhere] = ["", ""];

beforeEach(() => {
  disk = temporaryFolder("tiltyard-disk-");
  elsewhere = temporaryFolder("tiltyard-warehouse-");
  mount("-t", "tmpfs", "-o", `size=${diskMiB}m`, "tmpfs", disk);
});
afterEach(() => {
  execFileSync("umount", [disk]);
  rmdirSync(disk);
  rmSync(elsewhere, { recursive: true });
});

/** Mounts or unmounts a small disk, which requires root. CI runs as root. */
function mount(...args: readonly string[]): void {
  try {
    execFileSync("mount", args, { stdio: "pipe" });
  } catch (error) {
    throw new Error(`this test mounts a small disk: run it as root (${error})`);
  }
}

/** Fills the rest of the disk. @returns A function that frees the space again. */
function fill(): () => void {
  const file = join(disk, "ballast");
  const descriptor = openSync(file, "w");
  for (const bytes of [65_536, 1])
    try {
      for (;;) if (writeSync(descriptor, Buffer.alloc(bytes)) < bytes) break;
    } catch (error) {
      if (!/ENOSPC/.test(String(error))) throw error;
    }
  closeSync(descriptor);
  return () => rmSync(file);
}

test("a database on a full disk loses nothing, serves reads, answers writes with 503, and recovers", async () => {
  await using service = createServiceProcess(disk, { TILTYARD_WAREHOUSE: elsewhere });
  await service.start();
  const table = await service.declare("table");
  const committer = startCommitter(service, table, "writer");
  const untilAcknowledged = async (count: number) => {
    while (committer.acknowledged.length < count) await delay(5);
  };
  let names = 0;
  const declareStatus = async () => {
    names += 1;
    return (await post(service, `/v1/table/t_${names}/declare`))?.status;
  };
  await untilAcknowledged(10);

  for (const endsBy of ["room", "crash"]) {
    const free = fill();
    // The log of the database may have some space left.
    while ((await declareStatus()) === 200);
    expect(await declareStatus()).toBe(503);
    expect((await post(service, "/v1/table/table/describe"))?.status).toBe(200);
    expect((await fetch(`${service.url()}/health/live`)).status).toBe(200);
    if (endsBy === "crash") await service.kill();
    free();
    if (endsBy === "crash") await service.start();
    expect(await declareStatus()).toBe(200);
    await untilAcknowledged(committer.acknowledged.length + 10);
  }
  await committer.stop();
  await expectKept(service, table, committer.acknowledged);
  await expectNothingStaged(table);
});

test("a warehouse that turns read-only leaves a commit in doubt, and the same request finishes it afterwards", async () => {
  await using service = createServiceProcess(undefined, { TILTYARD_WAREHOUSE: disk });
  await service.start();
  const table = await service.declare("table");
  const staged = stageManifest(table, 1);
  mount("-o", "remount,ro", disk);
  const request = { version: 1, manifest_path: staged };
  const create = () => post(service, "/v1/table/table/version/create", request);
  const read = () => post(service, "/v1/table/table/version/describe", { version: 1 });
  expect([await create(), await read()]).toMatchObject([{ status: 503 }, { status: 503 }]);
  mount("-o", "remount,rw", disk);
  const manifest_path = expect.stringMatching(/\.manifest$/);
  const answer = { status: 200, body: { version: { manifest_path } } };
  expect([await create(), await read()]).toMatchObject([answer, answer]);
  await expectNothingStaged(table);
  await service.kill();
});

test("changes of rows on a full disk get 503 and leave nothing, and the same requests succeed when it has space", async () => {
  await using service = createServiceProcess(undefined, { TILTYARD_WAREHOUSE: disk });
  await service.start();
  const write = async (operation: string, id: number) =>
    (await postRows(service, operation, [{ id, title: "Stalker" }])).status;
  const statusOf = async (path: string, body = {}) => (await post(service, `/v1/table/films/${path}`, body))?.status;
  expect(await write("films/create", 1)).toBe(200);
  const folders = readdirSync(disk);
  const changes: Readonly<Record<string, () => Promise<number | undefined>>> = {
    insert: () => write("films/insert", 2),
    update: () => statusOf("update", { updates: [["title", "'Solaris'"]] }),
    delete: () => statusOf("delete", { predicate: "id = 1" }),
    merge: () => write("films/merge_insert?on=id&when_matched_update_all=true", 2),
    index: () => statusOf("create_scalar_index", { column: "id", index_type: "BTREE" }),
    branch: () => statusOf("branches/create", { name: "side" }),
    create: () => write("more/create", 3),
  };
  for (const [name, change] of Object.entries(changes)) {
    const before = await post(service, "/v1/table/films/version/list");
    const free = fill();
    expect([name, await change()]).toEqual([name, 503]);
    free();
    expect(await post(service, "/v1/table/films/version/list")).toEqual(before);
    expect(readdirSync(disk)).toEqual(folders);
    expect([name, await change()]).toEqual([name, 200]);
  }
  expect((await post(service, "/v1/table/films/branches/list"))?.body).toMatchObject({ branches: { side: {} } });
});

test("the service reports a database on a read-only disk at the start", async () => {
  await using service = createServiceProcess(disk, { TILTYARD_WAREHOUSE: elsewhere });
  await service.start();
  await service.kill("SIGTERM");
  mount("-o", "remount,ro", disk);
  const { code, stderr } = await service.spawn().finished;
  expect([code, stderr]).toEqual([1, expect.stringContaining(disk)]);
  expect(stderr).not.toContain("    at ");
});

test("a backup on a full disk names the disk as the problem, and leaves no part of it", async () => {
  await using service = createServiceProcess(elsewhere, {});
  await service.start();
  const free = fill();
  const file = join(disk, "backup.sqlite");
  const { code, stderr } = await runCatalogCommand(["backup", file], { TILTYARD_DATA_DIR: elsewhere });
  expect([code, stderr]).toEqual([1, expect.stringContaining(`cannot be copied to ${file}.partial: `)]);
  expect(stderr).toContain("disk is full");
  free();
  expect(readdirSync(disk)).toEqual([]);
});
