import { copyFileSync, existsSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { startCommitter } from "../support/committer.ts";
import { runCatalogCommand } from "../support/process.ts";
import {
  anyOf,
  countAcknowledged,
  createServiceProcess,
  expectAllKept,
  expectKept,
} from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** The number of kills. `.ci/run` and releases use more than a developer would wait for. */
const kills = Number(process.env.TILTYARD_FAULTS_KILLS ?? 200);
/** The interval of kills during the start of the service: one in this number. */
const killStartingEvery = 5;
/** The maximum number of commits before a kill, which follows after a short time. */
const commitsPerLifeMax = 20;
const killWithinMs = 20;

describe("a service that is killed while clients commit", () => {
  test.each([
    [kills, 1],
    [Math.ceil(kills / 4), 2],
  ])("keeps what it acknowledged, %i times, with %i processes over one file", async (times, processes) => {
    await using first = createServiceProcess();
    await using second = createServiceProcess(first.dataDir);
    const services = [first, second].slice(0, processes);
    await first.start();
    const [one, two, shared] = [await first.declare("one"), await first.declare("two"), await first.declare("shared")];
    for (const service of services.slice(1)) await service.start();
    const up = new Set(services);
    const service = anyOf(services, (each) => up.has(each));
    const writers = [
      { table: one, committer: startCommitter(service, one, "a") },
      { table: two, committer: startCommitter(service, two, "b") },
      { table: shared, committer: startCommitter(service, shared, "c") },
      { table: shared, committer: startCommitter(service, shared, "d") },
    ];
    for (let kill = 1; kill <= times; kill += 1) {
      const victim = services[Math.floor(Math.random() * services.length)] ?? first;
      const before = countAcknowledged(writers);
      const commits = Math.floor(Math.random() * commitsPerLifeMax);
      while (countAcknowledged(writers) < before + commits) await delay(1);
      await delay(Math.random() * killWithinMs);
      up.delete(victim);
      await victim.kill();
      if (kill % killStartingEvery === 0) {
        victim.spawn();
        await delay(Math.random() * 1_000);
        await victim.kill();
      }
      await victim.start();
      up.add(victim);
    }
    await Promise.all(writers.map(({ committer }) => committer.stop()));

    await expectAllKept(service, writers);
    process.stdout.write(
      `killed ${times} times under ${countAcknowledged(writers)} acknowledged commits, none of them lost\n`,
    );
  });

  test("finds the versions again that were in a write-ahead log that is lost", async () => {
    await using service = createServiceProcess();
    const file = join(service.dataDir, "catalog.sqlite");
    await service.start();
    const table = await service.declare("table");
    const before = startCommitter(service, table, "before");
    await untilAcknowledged(before, 20);
    await before.stop();
    checkpoint(file);
    const after = startCommitter(service, table, "after");
    await untilAcknowledged(after, 50);
    await after.stop();
    await service.kill();
    truncateSync(`${file}-wal`, 0);
    rmSync(`${file}-shm`, { force: true });
    expect(countVersions(file)).toBeLessThan(before.acknowledged.length + after.acknowledged.length);

    await service.start();
    await expectKept(service, table, [...before.acknowledged, ...after.acknowledged]);
  });
});

test("a backup under load contains all earlier acknowledged changes", async () => {
  const backups = temporaryFolder("tiltyard-backups-");
  await using service = createServiceProcess();
  await service.start();
  const table = await service.declare("table");
  const committer = startCommitter(service, table, "writer");
  await untilAcknowledged(committer, 10);
  const settings = { TILTYARD_DATA_DIR: service.dataDir };
  for (const name of ["first", "second", "third"]) {
    const backup = join(backups, name);
    const acknowledged = committer.acknowledged.at(-1)?.version ?? 0;
    expect(await runCatalogCommand(["backup", backup], settings)).toMatchObject({ code: 0 });
    expect(countVersions(backup)).toBeGreaterThanOrEqual(acknowledged);
  }
  await committer.stop();
  await service.kill("SIGTERM");

  for (const name of ["first", "second", "third"]) {
    expect(await runCatalogCommand(["restore", join(backups, name), "--force"], settings)).toMatchObject({ code: 0 });
    // The commits after the backup are found in the warehouse again.
    await service.start();
    await expectKept(service, table, committer.acknowledged);
    await service.kill("SIGTERM");
  }
  rmSync(backups, { recursive: true });
});

async function untilAcknowledged(committer: { readonly acknowledged: readonly unknown[] }, count: number) {
  while (committer.acknowledged.length < count) await delay(5);
}

/** Checkpoints the write-ahead log into the database file. */
function checkpoint(file: string): void {
  using database = new DisposableDatabase(file);
  database.pragma("wal_checkpoint(TRUNCATE)");
}

/** Counts the records of a database, which must be complete and without a gap. */
function countVersions(file: string): number {
  // The query runs on a copy so that the examined file does not change.
  const copy = join(temporaryFolder("tiltyard-examined-"), "copy.sqlite");
  copyFileSync(file, copy);
  expect(existsSync(`${copy}-wal`)).toBe(false);
  using database = new DisposableDatabase(copy);
  expect(database.pragma("integrity_check", { simple: true })).toBe("ok");
  const row = database
    .prepare("select count(*) as count, coalesce(max(version), 0) as highest from table_versions")
    .get();
  const { count, highest } = row as { count: number; highest: number };
  expect(highest).toBe(count);
  rmSync(join(copy, ".."), { recursive: true });
  return count;
}

class DisposableDatabase extends Database {
  [Symbol.dispose](): void {
    this.close();
  }
}
