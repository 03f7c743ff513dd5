/**
 * Programs that tests run and that no registry has ready to use. They are made once and kept
 * in the user's cache folder, under a hash of what they are made from.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { basename, delimiter, join, resolve } from "node:path";

/**
 * Makes a folder of the cache unless it is there, and finds a program in it. A venv knows its
 * own path and cannot be moved, so a folder is made under a name of its own and stays there.
 * The link to it is made when it is whole, so that neither a break-off nor a second run
 * leaves half of one.
 *
 * @param program Its path in the folder.
 * @param pins Everything that decides what the folder holds.
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
  // The program itself is looked for: what it links to may have been removed since.
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

/** Where things are kept from one run to the next. */
export function cacheFolder(): string {
  return resolve(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "tiltyard");
}

/**
 * Finds a program of the PATH. Debian's package of that name is installed where that can be done without asking.
 *
 * @param user What needs it.
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

function findProgram(name: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

/**
 * Runs a command to its end, with its output shown.
 *
 * @param needs What the tests need for this to work; it begins the error's message.
 * @throws Error when the command is not there or fails.
 */
export function run(command: string, args: readonly string[], needs: string): void {
  const { error, status } = spawnSync(command, args, { stdio: ["ignore", "inherit", "inherit"] });
  if (error !== undefined || status !== 0)
    throw failure(command, args, needs, error?.message ?? `it ended with ${status}`);
}

/** As {@link run}. @returns What the command printed. */
export function read(command: string, args: readonly string[], needs: string): string {
  const { error, status, stdout } = spawnSync(command, args, {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
  });
  if (error !== undefined || status !== 0)
    throw failure(command, args, needs, error?.message ?? `it ended with ${status}`);
  return stdout.trim();
}

function failure(command: string, args: readonly string[], needs: string, what: string): Error {
  return new Error(`these tests need ${needs}: ${[command, ...args].join(" ")}: ${what}`);
}

export const needsGo = "Go 1.26 or later, as go";
