/**
 * Interrupts the programs at random changes of files: they are killed in the middle of a change, the disk is full, or a
 * change fails. Afterwards the next start works, everything acknowledged exists, and no caller without a key is admin.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { readConfig } from "../../service/config.ts";
import { createLog } from "../../service/log.ts";
import { startService } from "../../service/start.ts";
import { verifySqliteFile } from "../../service/store/sqlite-file.ts";
import { stageManifest } from "../support/catalog.ts";
import { post, type Service } from "../support/committer.ts";
import { environmentWith, type Finished, runCatalogCommand, startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { compileFaultyWrites, faultKinds, withFault } from "./faulty-writes.ts";

/** The number of crash points and the seed. A search needs more, for example TILTYARD_FAULTS_POINTS=1000 TILTYARD_TEST_SEED=$RANDOM. */
const { TILTYARD_FAULTS_POINTS: points = "20", TILTYARD_TEST_SEED: seed = "1" } = process.env;
/** The number of catalogs that are interrupted at the same time. */
const lanes = 2;
/** The time after which a program that no fault ended is killed. */
const killAfterMs = 700;
/** The number of the latest tables, versions and keys that are checked after each point. */
const checkedMax = 40;
const adminKey = "the-key-of-the-fault-tests-0123456789";

const point = fc.record({
  program: fc.oneof(
    { weight: 5, arbitrary: fc.constant("serve") },
    ...["serve anew", "backup", "restore", "write files"].map((each) => ({ weight: 1, arbitrary: fc.constant(each) })),
  ),
  kind: fc.constantFrom(...faultKinds),
  /** The number of the change. A first start needs about 200 changes, a commit 10. */
  at: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 400 })),
});
type Point = (typeof point extends fc.Arbitrary<infer Each> ? Each : never) & { readonly number: number };

/** A catalog, and what it and the commands have acknowledged. */
class World {
  readonly folder = temporaryFolder("tiltyard-interrupted-");
  readonly dataDir = join(this.folder, "data");
  readonly temporary = join(this.folder, "temporary");
  readonly settings = {
    TILTYARD_DATA_DIR: this.dataDir,
    TILTYARD_PORT: "0",
    TILTYARD_LOG_LEVEL: "silent",
    TILTYARD_BOOTSTRAP_API_KEY: adminKey,
  };
  readonly tables: string[] = [];
  readonly versions: { readonly path: string; readonly request: object; readonly content: string }[] = [];
  readonly keys: string[] = [];
  readonly backups: string[] = [];
  profile: string | undefined;
}

/** A Python whose environments are two files. */
const python = `#!/bin/sh
set -e
case "$*" in
  -c*) echo 3.12.0 ;;
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *) echo "the packages" > "$(dirname "$0")/packages" ;;
esac
`;
let library: string;
let pythonFolder: string;
beforeAll(() => {
  library = compileFaultyWrites();
  pythonFolder = temporaryFolder("tiltyard-python-");
  writeFileSync(join(pythonFolder, "python3"), python, { mode: 0o755 });
});

/** The time in which a busy machine checks a point. */
const pointMs = 60_000;
const timeout = Number(points) * pointMs;

test(`${points} interrupted programs lose nothing that they acknowledged, and start again`, { timeout }, async () => {
  const all = fc.sample(point, { numRuns: Number(points), seed: Number(seed) });
  const queue = all.map((each, number) => ({ ...each, number })).values();
  const outcomes = new Map<string, number>();
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      let world = new World();
      for (const each of queue) {
        if (each.program === "serve anew") world = new World();
        const outcome = await interrupt(world, each).catch((cause) => {
          throw new Error(`point ${JSON.stringify(each)} in ${world.folder}`, { cause });
        });
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
    }),
  );
  process.stdout.write(`${[...outcomes].map(([outcome, count]) => `${outcome}: ${count}`).join("\n")}\n`);
});

async function interrupt(world: World, { program, kind, at, number }: Point): Promise<string> {
  const outcome = await run(world, program, withFault(library, world.folder, { kind, at }), number);
  await expectIntact(world);
  return `${program}, ${kind}, ${outcome}`;
}

/** Runs a program until a fault or the test ends it. @returns How it ended. */
async function run(world: World, program: string, faults: Record<string, string>, number: number): Promise<string> {
  const settings = { ...world.settings, ...faults };
  if (program === "write files") return writeFiles(world, faults, `${number}`);
  const isWritten = existsSync(join(world.dataDir, "catalog.sqlite"));
  if (program === "backup" && isWritten) {
    const backup = join(world.folder, `backup-${number}`);
    const finished = await runCatalogCommand(["backup", backup], settings);
    if (finished.code === 0 || existsSync(backup)) verifySqliteFile(backup);
    return outcomeOf(finished);
  }
  if (program === "restore" && isWritten) {
    const backup = join(world.folder, `backup-${number}`);
    expect(await runCatalogCommand(["backup", backup], world.settings)).toMatchObject({ code: 0 });
    return outcomeOf(await runCatalogCommand(["restore", backup, "--force"], settings));
  }
  return serve(world, settings, number);
}

/** Runs the commands that write files, with faults and then without. */
async function writeFiles(world: World, faults: Record<string, string>, url: string): Promise<string> {
  // A killed program leaves its temporary folders.
  rmSync(world.temporary, { recursive: true, force: true });
  mkdirSync(world.temporary);
  const environment = {
    XDG_CONFIG_HOME: world.folder,
    XDG_CACHE_HOME: world.folder,
    TMPDIR: world.temporary,
    PATH: `${pythonFolder}:${process.env.PATH}`,
  };
  const write = (more = {}) => startProgram(["test/faults/write-files.ts", url], { ...environment, ...more }).finished;
  const finished = await write(faults);
  expect([0, 1, null], finished.stderr).toContain(finished.code);
  const profiles = join(world.folder, "tiltyard/profiles.json");
  const profile = existsSync(profiles) ? JSON.parse(readFileSync(profiles, "utf8")).p?.url : undefined;
  expect(finished.code === 0 ? [url] : [world.profile, url]).toContain(profile);
  if (finished.code === 0) expect(readdirSync(world.temporary)).toEqual([]);

  expect(await write()).toMatchObject({ code: 0 });
  world.profile = url;
  const [environmentFolder = ""] = readdirSync(join(world.folder, "tiltyard")).filter((name) =>
    name.startsWith("python-"),
  );
  for (const [name, content] of [
    ["python", python],
    ["packages", "the packages\n"],
  ] as const)
    expect(readFileSync(join(world.folder, "tiltyard", environmentFolder, "bin", name), "utf8")).toBe(content);
  return outcomeOf(finished);
}

function outcomeOf({ code, signal, stderr }: Finished): string {
  // A failure is a sentence, not a stack trace or a crash.
  expect([null, "SIGKILL"], stderr).toContain(signal);
  if (code !== 0 && signal === null) expect(stderr).not.toMatch(/^ {4}at /m);
  return signal ?? `exit ${code}`;
}

/** Runs the service under the load of one client. */
async function serve(world: World, settings: Record<string, string>, number: number): Promise<string> {
  const { child, printed, finished } = startProgram(["service/main.ts", "serve"], settings);
  const started = printed("curl").catch(() => "");
  const url = /at (http:\S+)/.exec(await started)?.[1];
  if (url !== undefined) {
    const ended = Promise.race([finished, delay(killAfterMs)]).then(() => child.kill("SIGKILL"));
    await commit(
      world,
      { url: () => url, key: adminKey },
      () => child.exitCode === null && child.signalCode === null,
      number,
    );
    await ended;
  }
  const outcome = outcomeOf(await finished);
  return url === undefined ? `${outcome} at the start` : outcome;
}

/** Declares tables, commits versions and creates keys, and remembers the acknowledged ones. */
async function commit(world: World, service: Service, isUp: () => boolean, number: number): Promise<void> {
  for (let count = 0; isUp(); count += 1) {
    const name = `t_${number}_${count}`;
    const declared = await post(service, `/v1/table/${name}/declare`);
    if (declared?.status === 200) {
      world.tables.push(name);
      const { location } = declared.body as { location: string };
      for (let version = 1; version <= 2; version += 1) {
        const content = `${name} ${version}`;
        const request = {
          version,
          manifest_path: stageManifest({ id: [name], location }, version, { content }),
          naming_scheme: "V2",
        };
        const path = `/v1/table/${name}/version`;
        if ((await post(service, `${path}/create`, request))?.status === 200)
          world.versions.push({ path: `${path}/describe`, request: { version }, content });
      }
    }
    const made = await post(service, "/management/v1/api_key/create", { principal: name });
    if (made?.status === 201) world.keys.push((made.body as { key: string }).key);
    if (declared !== undefined) expect([200, 503]).toContain(declared.status);
  }
}

/** Starts the catalog without faults and checks what was acknowledged. */
async function expectIntact(world: World): Promise<void> {
  const service = await startService(readConfig(environmentWith(world.settings)), createLog("silent"));
  try {
    const client = { url: () => service.url, key: adminKey };
    for (const name of world.tables.slice(-checkedMax))
      expect([name, (await again(() => post(client, `/v1/table/${name}/describe`)))?.status]).toEqual([name, 200]);
    for (const { path, request, content } of world.versions.slice(-checkedMax)) {
      const described = await again(() => post(client, path, request));
      expect([path, described?.status]).toEqual([path, 200]);
      const found = described as { readonly body: { readonly version: { readonly manifest_path: string } } };
      expect(readFileSync(`/${found.body.version.manifest_path}`, "utf8")).toBe(content);
    }
    const statusWith = async (headers: Record<string, string>) =>
      (await again(() => fetch(`${service.url}/management/v1/caller/describe`, { headers }).catch(() => undefined)))
        ?.status;
    for (const key of world.keys.slice(-checkedMax)) expect(await statusWith({ "x-api-key": key })).toBe(200);
    for (const headers of [{}, { "x-api-key": "" }, { authorization: "Bearer " }])
      expect(await statusWith(headers as Record<string, string>)).toBe(401);
    const key = readFileSync(join(world.dataDir, "development.key"), "utf8");
    expect(key).toMatch(/^tiltyard_[0-9a-f]{12}_[\w-]{43}$/);
    expect(await statusWith({ "x-api-key": key })).toBe(200);
  } finally {
    await service.stop();
  }
}

/** Repeats a request without an answer: on a busy machine, the service may close a connection just before its next request. */
async function again<Answer>(request: () => Promise<Answer | undefined>): Promise<Answer | undefined> {
  return (await request()) ?? (await request()) ?? (await request());
}
