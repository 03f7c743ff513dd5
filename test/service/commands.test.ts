import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { runCommandLine } from "../../service/command-line.ts";
import { readConfig } from "../../service/config.ts";
import { createLog } from "../../service/log.ts";
import { startService } from "../../service/start.ts";
import { startCommand } from "../support/command.ts";
import { createTestDatabase, databaseKind, type TestDatabase } from "../support/database.ts";
import { runCatalogCommand, startProgram } from "../support/process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

/** Returns settings. SQLite's default location is the folder. */
function settingsIn(folder: string): Record<string, string> {
  const settings = { TILTYARD_DATA_DIR: folder, TILTYARD_PORT: "0" };
  return databaseKind === "sqlite" ? settings : { ...settings, TILTYARD_DATABASE_URL: database.url };
}

/** Runs a command within this process. `runCatalogCommand` runs some as processes, which share the exit code. */
const run = (args: readonly string[], settings: Readonly<Record<string, string>>) =>
  startCommand(runCommandLine, args, settings).finished;

/** Starts the service like `npm start`. */
async function serve(folder: string) {
  const program = startProgram(["service/main.ts", "serve"], settingsIn(folder));
  const welcome = await program.printed("curl");
  const url = /at (http:\S+)/.exec(welcome)?.[1] ?? "";
  return { program, welcome, url };
}

/** Starts the service within this process. */
async function serveHere(folder: string, settings: Readonly<Record<string, string>> = {}) {
  const config = readConfig({ ...settingsIn(folder), TILTYARD_LOG_LEVEL: "silent", ...settings });
  const { url, stop } = await startService(config, createLog(config.logLevel));
  return { url, stop, headers: { "x-api-key": readFileSync(join(folder, "development.key"), "utf8") } };
}

describe("serve", () => {
  test("prints how to call it, and no secret, and has 16 threads that wait for the disk", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    const service = await serve(folder);
    const key = readFileSync(join(folder, "development.key"), "utf8");
    expect(service.welcome).toContain(`curl -H "x-api-key: $(cat ${join(folder, "development.key")})"`);
    const response = await fetch(`${service.url}/v1/namespace/$/list`, { headers: { "x-api-key": key } });
    expect(response.status).toBe(200);
    if (process.platform === "linux") {
      const threads = `/proc/${service.program.child.pid}/task`;
      const nameOf = (thread: string) => readFileSync(join(threads, thread, "comm"), "utf8").trim();
      await expect.poll(() => readdirSync(threads).filter((each) => nameOf(each) === "libuv-worker")).toHaveLength(16);
    }
    service.program.child.kill("SIGTERM");
    const { code, stdout, stderr } = await service.program.finished;
    expect(code).toBe(0);
    expect(stdout + stderr).not.toContain(key);
  });

  test("ends with every problem of its settings, and exit code 2", async () => {
    const { code, stderr } = await run(["serve"], {
      TILTYARD_PORT: "http",
      TILTYARD_AUTH: "oidc",
      TILTYARD_WAREHOUSE: "ftp://host/x",
    });
    expect(code).toBe(2);
    for (const name of ["TILTYARD_PORT", "TILTYARD_OIDC_ISSUER", "TILTYARD_OIDC_AUDIENCE", "TILTYARD_WAREHOUSE"])
      expect(stderr).toContain(name);
    expect(stderr).not.toContain("    at ");
  });

  test("says what to do when its port is taken", async () => {
    const service = await serveHere(temporaryFolder("tiltyard-commands-"));
    const port = new URL(service.url).port;
    const folder = temporaryFolder("tiltyard-commands-");
    const other = await runCatalogCommand(["serve"], { ...settingsIn(folder), TILTYARD_PORT: port });
    expect(other.code).toBe(1);
    expect(other.stderr).toContain("set TILTYARD_PORT");
    await service.stop();
  });
});

test("serve --help names the page of settings", async () => {
  expect(await run(["serve", "--help"], {})).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("TILTYARD_PORT"),
  });
});

test("a command with a closed output ends without an error", async () => {
  const folder = temporaryFolder("tiltyard-commands-");
  await (await serveHere(folder)).stop();
  const args = ["service/main.ts", "check-warehouse"];
  const program = startProgram(args, settingsIn(folder));
  program.child.stdout?.destroy();
  expect(await program.finished).toMatchObject({ code: 0, stderr: "" });
});

test("--version prints the version of the package", async () => {
  const { version } = JSON.parse(readFileSync("service/package.json", "utf8"));
  expect(await run(["--version"], {})).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
});

test.each([
  [["serve", "--port", "3"], 2, "unknown option '--port'"],
  [["backup"], 2, "missing required argument 'file'\n(see --help)"],
  [["nothing"], 2, "unknown command"],
])("a command line such as %j is refused with exit code %i", async (args, exitCode, message) => {
  const { code, stderr } = await run(args, settingsIn(temporaryFolder("tiltyard-commands-")));
  expect([code, stderr]).toEqual([exitCode, expect.stringContaining(message)]);
});

describe.runIf(databaseKind === "sqlite")("backup and restore", () => {
  test("bring a catalog back as it was when it was backed up under load", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    const { headers, ...service } = await serveHere(folder);
    const create = (name: string) =>
      fetch(`${service.url}/v1/namespace/${name}/create`, { method: "POST", headers }).then((answer) => answer.status);
    expect(await create("before")).toBe(200);
    const load = Promise.all(Array.from({ length: 200 }, (_, index) => create(`during_${index}`)));
    const backups = temporaryFolder("tiltyard-backups-");
    const backup = join(backups, "backup.sqlite");
    expect((await runCatalogCommand(["backup", backup], settingsIn(folder))).code).toBe(0);
    expect(new Set(await load)).toEqual(new Set([200]));
    expect(await create("after")).toBe(200);

    const whileRunning = await run(["restore", backup, "--force"], settingsIn(folder));
    expect([whileRunning.code, whileRunning.stderr]).toEqual([1, expect.stringContaining("stop the service first")]);
    await service.stop();

    const unforced = await run(["restore", backup], settingsIn(folder));
    expect([unforced.code, unforced.stderr]).toEqual([1, expect.stringContaining("--force")]);
    const forced = await run(["restore", backup, "--force", "--json"], settingsIn(folder));
    expect(existsSync(JSON.parse(forced.stdout).kept)).toBe(true);
    expect(readdirSync(backups)).toEqual(["backup.sqlite"]);

    const restored = await serveHere(folder);
    const exists = (name: string) =>
      fetch(`${restored.url}/v1/namespace/${name}/exists`, { method: "POST", headers }).then((answer) => answer.status);
    expect(await exists("before")).toBe(200);
    expect(await exists("after")).toBe(404);
    await restored.stop();
  });

  test("restore a copied database with its log, and keep the replaced one", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    const copied = join(temporaryFolder("tiltyard-copied-"), "copy.sqlite");
    const { headers, ...service } = await serveHere(folder);
    await fetch(`${service.url}/v1/namespace/precious/create`, { method: "POST", headers });
    const file = join(folder, "catalog.sqlite");
    for (const suffix of ["", "-wal"]) copyFileSync(`${file}${suffix}`, `${copied}${suffix}`);
    await service.stop();
    writeFileSync(file, "damaged ".repeat(2_000));
    const { code, stdout } = await run(["restore", copied, "--force", "--json"], settingsIn(folder));
    expect(code).toBe(0);
    expect(readFileSync(JSON.parse(stdout).kept, "utf8")).toContain("damaged");
    const restored = await serveHere(folder);
    const found = await fetch(`${restored.url}/v1/namespace/precious/exists`, { method: "POST", headers });
    expect(found.status).toBe(200);
    await restored.stop();
  });

  test("keep the permissions of the database, and its owner for root", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    await (await serveHere(folder)).stop();
    const [file, backup] = [join(folder, "catalog.sqlite"), join(folder, "backup.sqlite")];
    const owner = process.getuid?.() === 0 ? 12_345 : process.getuid?.();
    chownSync(file, owner ?? 0, statSync(file).gid);
    const accessOf = (path: string) => [(statSync(path).mode & 0o777).toString(8), statSync(path).uid];
    chmodSync(file, 0o600);
    expect((await run(["backup", backup], settingsIn(folder))).code).toBe(0);
    expect(accessOf(backup)).toEqual(["600", owner]);
    chmodSync(file, 0o660);
    expect((await run(["restore", backup, "--force"], settingsIn(folder))).code).toBe(0);
    expect(accessOf(file)).toEqual(["660", owner]);
  });

  test.each([
    ["catalog.sqlite-wal", "Restore a backup"],
    ["catalog.sqlite.before-restore-2026-01-01", "Restore a backup"],
    ["warehouse/ns/t-0123456789ab.lance/_versions/1.manifest", "TILTYARD_NEW_CATALOG=1"],
  ])("are named when %s exists without a database, and no program starts an empty catalog", async (remains, advice) => {
    const folder = temporaryFolder("tiltyard-commands-");
    mkdirSync(dirname(join(folder, remains)), { recursive: true });
    writeFileSync(join(folder, remains), "remains");
    for (const each of [false, true]) {
      // SQLite treats an empty file like a missing one.
      if (each) writeFileSync(join(folder, "catalog.sqlite"), "");
      const { code, stderr } = await run(["serve"], settingsIn(folder));
      expect([code, stderr]).toEqual([1, expect.stringContaining(advice)]);
      expect(stderr).toContain(remains.startsWith("catalog") ? remains : "ns/t-0123456789ab.lance");
    }
    expect(readFileSync(join(folder, remains), "utf8")).toBe("remains");
  });

  test("are not needed to start an empty catalog on purpose", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    const table = join(folder, "warehouse/t-0123456789ab.lance/_versions");
    mkdirSync(table, { recursive: true });
    writeFileSync(join(table, "1.manifest"), "");
    await (await serveHere(folder, { TILTYARD_NEW_CATALOG: "1" })).stop();
    await (await serveHere(folder)).stop();
  });

  test("refuse an incomplete database and change nothing", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    const file = join(folder, "broken.sqlite");
    writeFileSync(file, "not a database, but long enough to look like one".repeat(100));
    const { code, stderr } = await run(["restore", file], settingsIn(folder));
    expect([code, stderr]).toEqual([1, expect.stringContaining("file is not a database")]);
    expect(readdirSync(folder)).toEqual(["broken.sqlite"]);
    const overwritten = await run(["backup", file], settingsIn(folder));
    expect([overwritten.code, overwritten.stderr]).toEqual([1, expect.stringContaining("already exists")]);
    const astray = join(folder, "no", "backup.sqlite");
    expect(await run(["backup", astray], settingsIn(folder))).toMatchObject({
      code: 1,
      stderr: `tiltyard-catalog: the folder ${join(folder, "no")} does not exist\n`,
    });
  });
});

describe("check-warehouse", () => {
  test("uses the warehouse, leaves nothing in it, and prints the identity used", async () => {
    const folder = temporaryFolder("tiltyard warehouse ");
    const settings = { TILTYARD_WAREHOUSE: pathToFileURL(folder).href };
    const output = join(folder, "check.json");
    const args = ["check-warehouse", "--json", "--output", output];
    const { code, stdout } = await run(args, settings);
    expect(code).toBe(0);
    const check = { warehouse: settings.TILTYARD_WAREHOUSE, identity: expect.stringMatching(/^user \w+$/) };
    expect(JSON.parse(stdout)).toEqual(check);
    expect(JSON.parse(readFileSync(output, "utf8"))).toEqual(check);
    const left = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    expect(left.map(({ name }) => name)).toEqual(["check.json"]);
  });

  test("reports why it cannot check", async () => {
    const file = join(temporaryFolder("tiltyard warehouse "), "a file");
    writeFileSync(file, "");
    const settings = { TILTYARD_WAREHOUSE: pathToFileURL(file).href };
    const { code, stdout } = await run(["check-warehouse"], settings);
    expect([code, stdout]).toEqual([1, expect.stringMatching(/cannot be used: .*not a directory.*, as user/i)]);
  });
});

describe.runIf(databaseKind === "sqlite")("a start names the database and the way out of the problem", () => {
  test("when another process has locked the file", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    await (await serveHere(folder)).stop();
    const file = join(folder, "catalog.sqlite");
    const other = new Database(file);
    other.exec("begin immediate");
    let elapsedMs = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => (elapsedMs += 1_000));
    try {
      const expected = `The catalog cannot use its database at ${file}: database is locked. Another process has locked it`;
      await expect(serveHere(folder)).rejects.toThrow(expected);
    } finally {
      clock.mockRestore();
      other.close();
    }
  });

  test("when the file is truncated", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    await (await serveHere(folder)).stop();
    truncateSync(join(folder, "catalog.sqlite"), 100_000);
    const { code, stderr } = await run(["serve"], settingsIn(folder));
    const expected = /catalog\.sqlite: .*malformed\. Restore a backup with tiltyard-catalog restore\n$/;
    expect([code, stderr]).toEqual([1, expect.stringMatching(expected)]);
  });
});

describe.runIf(databaseKind === "sqlite")("a database file that changes while the service runs", () => {
  test("answers a request that needs damaged pages with advice for the operator", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    await (await serveHere(folder)).stop();
    const file = join(folder, "catalog.sqlite");
    const database = new Database(file, { readonly: true });
    const pages = database.prepare("select rootpage from sqlite_schema where tbl_name = 'tables'").pluck().all();
    database.close();
    const bytes = readFileSync(file);
    for (const page of pages.map(Number)) bytes.fill(0xff, (page - 1) * 4_096, page * 4_096);
    writeFileSync(file, bytes);
    const { headers, ...service } = await serveHere(folder);
    const response = await fetch(`${service.url}/v1/table/t/describe`, { method: "POST", headers });
    const detail = "The catalog's database is damaged: its operator must restore a backup.";
    expect(await response.json()).toMatchObject({ status: 503, detail });
    await service.stop();
  });

  test("is not ready after the truncation of the log", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    const { headers, ...service } = await serveHere(folder);
    const created = await fetch(`${service.url}/v1/namespace/before/create`, { method: "POST", headers });
    expect(created.status).toBe(200);
    truncateSync(join(folder, "catalog.sqlite-wal"));
    expect((await fetch(`${service.url}/health/ready`)).status).toBe(503);
    await service.stop();
  });

  test("refuses changes and is not ready until the file is back, and loses nothing", async () => {
    const folder = temporaryFolder("tiltyard-commands-");
    const { headers, ...service } = await serveHere(folder);
    const statusOf = async (path: string, method = "GET") =>
      (await fetch(service.url + path, { method, headers })).status;
    expect(await statusOf("/v1/namespace/before/create", "POST")).toBe(200);
    const file = join(folder, "catalog.sqlite");
    renameSync(file, `${file}-moved`);
    expect(await statusOf("/v1/namespace/meanwhile/create", "POST")).toBe(503);
    expect(await statusOf("/health/ready")).toBe(503);
    expect(await statusOf("/health/live")).toBe(200);
    renameSync(`${file}-moved`, file);
    expect(await statusOf("/health/ready")).toBe(200);
    expect(await statusOf("/v1/namespace/after/create", "POST")).toBe(200);
    await service.stop();
    const again = await serveHere(folder);
    const listed = await fetch(`${again.url}/v1/namespace/$/list`, { headers });
    expect(await listed.json()).toMatchObject({ namespaces: ["after", "before"] });
    await again.stop();
  });
});
