import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { developmentKeyFile } from "../../service/auth/reserved-keys.ts";
import { imageCommand, imageEnvironment } from "../support/dockerfile.ts";
import { environmentWith } from "../support/process.ts";
import type { Target } from "./load.ts";
import { coresOf } from "./wrk.ts";

/** A server in a separate process on the loopback interface. */
export interface Server extends Target, AsyncDisposable {
  readonly pid: number;
  /**
   * Adds copies of a declared table as if each had been declared too; absent if requests are fast enough.
   *
   * @param id The table, with `$` as delimiter, like its copies.
   */
  readonly copyTable?: (id: string, copies: readonly string[]) => void;
}

const projectFolder = resolve(import.meta.dirname, "../..");
const startTimeoutMs = 60_000;
const stopTimeoutMs = 5_000;
const printedCharacters = 4_000;

/**
 * Starts the catalog as in production, with the settings of its image. It verifies tokens and writes its log to a file.
 *
 * @param checkout The folder of another checkout with installed packages.
 * @param headers The headers of an earlier start over the same folder; a token is fetched when absent.
 */
export async function startTiltyard(
  folder: string,
  nodeOptions: readonly string[] = [],
  { checkout = projectFolder, headers }: TiltyardOptions = {},
): Promise<Server> {
  mkdirSync(folder, { recursive: true });
  const log = openSync(join(folder, "service.log"), "w");
  const settings = {
    TILTYARD_HOST: "127.0.0.1",
    TILTYARD_PORT: "0",
    TILTYARD_DATA_DIR: folder,
  };
  const command = imageCommand();
  const program = start(process.execPath, [...command.options, ...nodeOptions, command.program, "serve"], {
    environment: { ...imageEnvironment(), ...settings },
    stdout: log,
    cwd: checkout,
  });
  closeSync(log);
  const url = await announcedUrl(program);
  return serverOf(program, url, headers ?? { authorization: `Bearer ${await fetchToken(url, folder)}` });
}

interface TiltyardOptions {
  readonly checkout?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Starts pylance's RestAdapter over a folder. It checks no credentials. */
export async function startReference(folder: string, python: string): Promise<Server> {
  mkdirSync(folder, { recursive: true });
  const program = start(python, [join(import.meta.dirname, "reference.py"), folder]);
  return {
    ...serverOf(program, await announcedUrl(program)),
    copyTable: (id, copies) => {
      const args = [join(import.meta.dirname, "reference_fill.py"), folder, id];
      execFileSync(python, args, { input: copies.join("\n"), stdio: ["pipe", "inherit", "inherit"] });
    },
  };
}

export async function startBareHono(): Promise<Server> {
  const program = start(process.execPath, [join(import.meta.dirname, "bare-hono.ts")]);
  return serverOf(program, await announcedUrl(program));
}

interface StartOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** A file descriptor; standard output is discarded when absent. */
  readonly stdout?: number;
  /** The working directory; this checkout when absent. */
  readonly cwd?: string;
}

interface Program {
  readonly child: ChildProcess;
  /** Returns the end of standard error so far. */
  readonly printed: () => string;
}

/** Starts a program with only these settings of Tiltyard. It exits with this process at the latest. */
function start(command: string, args: readonly string[], options: StartOptions = {}): Program {
  const [first = command, ...rest] = [...coresOf("server"), command, ...args];
  const child = spawn(first, rest, {
    cwd: options.cwd ?? projectFolder,
    env: environmentWith(options.environment ?? {}),
    stdio: ["pipe", options.stdout ?? "ignore", "pipe"],
  });
  const kill = () => child.kill("SIGKILL");
  // The program must exit before the folders of the servers are deleted, which also happens at the exit of this
  // process.
  process.prependOnceListener("exit", kill);
  child.once("close", () => process.off("exit", kill));
  let printed = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    printed = (printed + text).slice(-printedCharacters);
  });
  return { child, printed: () => printed };
}

/** Waits for the address that a server prints on standard error when it listens. */
async function announcedUrl({ child, printed }: Program): Promise<string> {
  const deadline = AbortSignal.timeout(startTimeoutMs);
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => reject(new Error(`${child.spawnargs.join(" ")} ${reason}: ${printed()}`));
    child.once("error", reject);
    child.once("close", (code) => fail(`ended with ${code}`));
    deadline.addEventListener("abort", () => fail("did not start in time"));
    child.stderr?.on("data", () => {
      const url = /http:\/\/\S+(?=\s)/.exec(printed())?.[0];
      if (url !== undefined) resolve(url);
    });
  });
}

function serverOf({ child, printed }: Program, url: string, headers: Readonly<Record<string, string>> = {}): Server {
  // The measurement fails too, but without the reason.
  const tell = (code: number | null, signal: string | null) =>
    process.stderr.write(`bench: ${child.spawnargs.join(" ")} ended with ${code ?? signal}: ${printed()}\n`);
  child.once("close", tell);
  return {
    url,
    headers,
    pid: child.pid ?? Number.NaN,
    [Symbol.asyncDispose]: async () => {
      child.off("close", tell);
      if (child.exitCode !== null || child.signalCode !== null) return;
      const closed = once(child, "close");
      child.stdin?.end();
      child.kill("SIGTERM");
      const overdue = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs);
      await closed;
      clearTimeout(overdue);
    },
  };
}

async function fetchToken(url: string, dataDir: string): Promise<string> {
  const response = await fetch(`${url}/oauth/token`, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "client_credentials",
      client_secret: readFileSync(developmentKeyFile(dataDir), "utf8").trim(),
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the server issued no token: ${response.status} ${text}`);
  return JSON.parse(text).access_token;
}
