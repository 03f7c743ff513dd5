/**
 * Programs for tests that no registry offers ready to use. They are built once and kept in the user's cache folder under a hash of
 * their sources.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { basename, delimiter, join, resolve } from "node:path";

/**
 * Builds a folder of the cache unless it exists, and returns a program in it. A venv contains its own path and cannot move, so each build has
 * a unique folder, and a link to it appears once it is complete. An interrupted or concurrent build therefore never leaves a partial result.
 *
 * @param program Its path in the folder.
 * @param pins Everything that determines the content of the folder.
 * @returns The path of the program.
 */
export function prepare(
  name: string,
  program: string,
  pins: readonly (string | Buffer)[],
  make: (folder: string) => void,
): string {
  const hash = createHash("sha256");
  for (const pin of pins) hash.update(pin).update("\0");
  const link = join(cacheFolder(), `${name}-${hash.digest("hex").slice(0, 16)}`);
  // The link may exist without its target, so this checks the program itself.
  if (existsSync(join(link, program))) return join(realpathSync(link), program);

  const folder = `${link}.${process.pid}-${Date.now()}`;
  process.stderr.write(`making ${folder}\n`);
  try {
    mkdirSync(folder, { recursive: true });
    make(folder);
    symlinkSync(basename(folder), `${folder}.link`);
    renameSync(`${folder}.link`, link);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  return join(folder, program);
}

/** Returns the folder of everything that later runs reuse. */
export function cacheFolder(): string {
  return resolve(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "tiltyard");
}

/**
 * Finds a program on the PATH. On Debian as root, it installs the package of the same name if the program is missing.
 *
 * @param user The tests that need the program.
 * @returns Its path.
 */
export function prepareDebianProgram(name: string, user: string): string {
  const found = findProgram(name);
  if (found !== undefined) return found;
  const needs = `${name} in the PATH: apt-get install ${name}`;
  const isRoot = process.getuid?.() === 0;
  if (isRoot && findProgram("apt-get") !== undefined) {
    run("apt-get", ["update", "-qq"], needs);
    run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", name], needs);
  }
  const installed = findProgram(name);
  if (installed === undefined) throw new Error(`${user} need ${needs}`);
  return installed;
}

export function findProgram(name: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/**
 * Runs a command to its end and shows its output.
 *
 * @param needs The prerequisite that the error message names.
 * @throws Error if the command is missing or fails.
 */
export function run(command: string, args: readonly string[], needs: string): void {
  const { error, status } = spawnSync(command, args, { stdio: ["ignore", "inherit", "inherit"] });
  if (error !== undefined || status !== 0)
    throw failure(command, args, needs, error?.message ?? `it ended with ${status}`);
}

/** Charts are among the outputs. */
const outputBytesMax = 64 * 1024 * 1024;

/** Runs a command like {@link run}. @returns Its standard output. */
export function read(command: string, args: readonly string[], needs: string): string {
  const { error, status, stdout } = spawnSync(command, args, {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    maxBuffer: outputBytesMax,
  });
  if (error !== undefined || status !== 0)
    throw failure(command, args, needs, error?.message ?? `it ended with ${status}`);
  return stdout.trim();
}

function failure(command: string, args: readonly string[], needs: string, what: string): Error {
  return new Error(`these tests need ${needs}: ${[command, ...args].join(" ")}: ${what}`);
}

export const needsGo = "Go 1.26 or later, as go";
