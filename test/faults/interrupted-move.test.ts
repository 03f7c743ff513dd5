/**
 * Interrupts `move` at random changes of files and at random answers of PostgreSQL. Afterwards the database has the whole
 * catalog, or the service refuses it and the next `move` copies everything.
 */
import { copyFileSync, existsSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readConfig } from "../../service/config.ts";
import { createLog } from "../../service/log.ts";
import { startService } from "../../service/start.ts";
import { stageManifest } from "../support/catalog.ts";
import { post } from "../support/committer.ts";
import { type PostgresServer, runSql, startPostgres } from "../support/postgres-server.ts";
import { environmentWith, startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { compileFaultyWrites, faultKinds, withFault } from "./faulty-writes.ts";

/** The search of `interrupted-writes.test.ts`, an eighth of which are points of this program. */
const { TILTYARD_FAULTS_POINTS: allPoints = "24", TILTYARD_TEST_SEED: seed = "1" } = process.env;
const points = Math.ceil(Number(allPoints) / 8);
const pointMs = 60_000;
const tableCount = 20;
const adminKey = "the-key-of-the-fault-tests-0123456789";
const answerKinds = ["killed at an answer", "disconnected at an answer"] as const;
/** The approximate numbers of changes of files and of answers that a whole move needs. */
const [changes, answers] = [40, 220];

const point = fc.oneof(
  fc.record({ kind: fc.constantFrom(...faultKinds), at: fc.integer({ min: 1, max: changes }) }),
  fc.record({ kind: fc.constantFrom(...answerKinds), at: fc.integer({ min: 1, max: answers }) }),
);

const dataDir = temporaryFolder("tiltyard-moved-");
const settings = {
  TILTYARD_DATA_DIR: dataDir,
  TILTYARD_PORT: "0",
  TILTYARD_LOG_LEVEL: "silent",
  TILTYARD_BOOTSTRAP_API_KEY: adminKey,
};
const tables = Array.from({ length: tableCount }, (_, number) => `t_${number}`);
const source = join(temporaryFolder("tiltyard-source-"), "catalog.sqlite");
let library: string;
let server: PostgresServer;
beforeAll(async () => {
  library = compileFaultyWrites();
  server = await startPostgres();
  const service = await startService(readConfig(environmentWith(settings)), createLog("silent"));
  const client = { url: () => service.url, key: adminKey };
  for (const name of tables) {
    const declared = (await post(client, `/v1/table/${name}/declare`)) as {
      readonly body: { readonly location: string };
    };
    const manifest_path = stageManifest({ id: [name], location: declared.body.location }, 1);
    const request = { version: 1, manifest_path, naming_scheme: "V2" };
    expect((await post(client, `/v1/table/${name}/version/create`, request))?.status).toBe(200);
  }
  // The copy of an open database has a log.
  for (const suffix of ["", "-wal"]) copyFileSync(join(dataDir, `catalog.sqlite${suffix}`), `${source}${suffix}`);
  await service.stop();
}, 10 * pointMs);
afterAll(() => server.destroy());

test(`${points} interrupted moves copy all or nothing`, { timeout: points * pointMs }, async () => {
  for (const [number, each] of fc.sample(point, { numRuns: points, seed: Number(seed) }).entries()) {
    const outcome = await interrupt(`moved_${number}`, each).catch((cause) => {
      throw new Error(`point ${JSON.stringify(each)}`, { cause });
    });
    process.stderr.write(`${JSON.stringify(each)}: ${outcome}\n`);
  }
});

async function interrupt(name: string, { kind, at }: { readonly kind: string; readonly at: number }): Promise<string> {
  await runSql(server.urlOf("postgres"), `create database ${name}`);
  const url = server.urlOf(name);
  const folder = temporaryFolder("tiltyard-moving-");
  const file = join(folder, "catalog.sqlite");
  for (const suffix of ["", "-wal"]) copyFileSync(`${source}${suffix}`, `${file}${suffix}`);
  const move = (to: string, faults = {}) =>
    startProgram(["service/main.ts", "move", file], { TILTYARD_DATABASE_URL: to, ...faults });

  const isOfFiles = faultKinds.some((each) => each === kind);
  await using proxy = await startProxy(Number(new URL(url).port), at, () => {
    if (kind === "killed at an answer") interrupted.child.kill("SIGKILL");
    return isOfFiles;
  });
  const throughProxy = new URL(url);
  throughProxy.port = `${proxy.port}`;
  const interrupted = move(throughProxy.href, isOfFiles ? withFault(library, folder, { kind, at }) : {});
  const { code, signal, stderr } = await interrupted.finished;
  expect([null, "SIGKILL"], stderr).toContain(signal);
  expect(stderr).not.toMatch(/^ {4}at /m);
  expect(existsSync(file)).toBe(true);

  const refused = await start(url).catch((error: Error) => error.message);
  if (refused !== undefined) {
    expect([refused, code]).toEqual([
      expect.stringContaining("Repeat an interrupted tiltyard-catalog move"),
      signal ? null : 1,
    ]);
    expect(await move(url).finished).toMatchObject({ code: 0 });
    expect(await start(url)).toBeUndefined();
  }
  return `${signal ?? `exit ${code}`}, ${refused === undefined ? "complete" : "refused until the next move"}`;
}

/** Starts the service over a database, which must have the whole catalog. @throws Error if the service refuses it. */
async function start(url: string): Promise<undefined> {
  const config = readConfig(environmentWith({ ...settings, TILTYARD_DATABASE_URL: url }));
  const service = await startService(config, createLog("silent"));
  try {
    const client = { url: () => service.url, key: adminKey };
    for (const name of tables)
      expect((await post(client, `/v1/table/${name}/version/describe`, { version: 1 }))?.status).toBe(200);
  } finally {
    await service.stop();
  }
}

/** Forwards connections to PostgreSQL. @param isForwarded Decides about answer number `at`; false ends the connection. */
async function startProxy(port: number, at: number, isForwarded: () => boolean) {
  let count = 0;
  const proxy = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
    client.pipe(upstream).on("data", (answer) => {
      count += 1;
      if (count !== at || isForwarded()) client.write(answer);
      else end();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    port: (proxy.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => void proxy.close(() => resolve())),
  };
}
