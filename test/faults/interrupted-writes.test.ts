/**
 * Interrupts the programs at random changes of files: they are killed in the middle of a change, the disk is full, or a
 * change fails. Afterwards the next start works, everything acknowledged exists, and no caller without a key is admin.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
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

/** The number of crash points and the seed. A search needs more, for example TILTYARD_FAULTS_POINTS=1000 TILTYARD_TEST_SEED=$RANDOM. */
const { TILTYARD_FAULTS_POINTS: points = "24", TILTYARD_TEST_SEED: seed = "1" } = process.env;
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
    ...["serve anew", "backup", "restore", "login"].map((each) => ({ weight: 1, arbitrary: fc.constant(each) })),
  ),
  kind: fc.constantFrom("KILL", "ENOSPC", "EIO"),
  /** The number of the change. A first start needs about 200 changes, a commit 10. */
  at: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 400 })),
});
type Point = (typeof point extends fc.Arbitrary<infer Each> ? Each : never) & { readonly number: number };

/** A catalog, and what it and the commands have acknowledged. */
class World {
  readonly folder = temporaryFolder("tiltyard-interrupted-");
  readonly dataDir = join(this.folder, "data");
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

let library: string;
beforeAll(() => {
  library = join(temporaryFolder("tiltyard-faulty-writes-"), "faulty-writes.so");
  execFileSync("gcc", ["-O1", "-shared", "-fPIC", "-o", library, join(import.meta.dirname, "faulty-writes.c"), "-ldl"]);
});

test(`${points} interrupted programs lose nothing that they acknowledged, and start again`, async () => {
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
  const faults = {
    LD_PRELOAD: library,
    FAULTY_WRITES_DIR: world.folder,
    FAULTY_WRITES_AT: `${at}`,
    FAULTY_WRITES_KIND: kind,
  };
  const outcome = await run(world, program, faults, number);
  await expectIntact(world);
  return `${program}, ${kind}, ${outcome}`;
}

/** Runs a program until a fault or the test ends it. @returns How it ended. */
async function run(world: World, program: string, faults: Record<string, string>, number: number): Promise<string> {
  const settings = { ...world.settings, ...faults };
  if (program === "login") {
    const script = `import { storeProfile } from "./client/commands/profiles.ts"; storeProfile("p", { url: "${number}" });`;
    const home = { XDG_CONFIG_HOME: world.folder };
    const finished = await startProgram(["--input-type=module", "--eval", script], { ...home, ...faults }).finished;
    if (finished.code === 0) world.profile = `${number}`;
    const files = readdirSync(world.folder);
    const profile = files.includes("tiltyard") ? readProfile(world) : undefined;
    expect([world.profile, `${number}`]).toContain(profile);
    world.profile = profile;
    return outcomeOf(finished);
  }
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

function readProfile(world: World): string | undefined {
  const file = join(world.folder, "tiltyard/profiles.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).p?.url : undefined;
}

function outcomeOf({ code, signal, stderr }: Finished): string {
  // A failure is a sentence, not a stack trace.
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
      expect([name, (await post(client, `/v1/table/${name}/describe`))?.status]).toEqual([name, 200]);
    for (const { path, request, content } of world.versions.slice(-checkedMax)) {
      const described = await post(client, path, request);
      expect([path, described?.status]).toEqual([path, 200]);
      const found = described as { readonly body: { readonly version: { readonly manifest_path: string } } };
      expect(readFileSync(`/${found.body.version.manifest_path}`, "utf8")).toBe(content);
    }
    const statusWith = async (headers: Record<string, string>) =>
      (await fetch(`${service.url}/management/v1/caller/describe`, { headers })).status;
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
