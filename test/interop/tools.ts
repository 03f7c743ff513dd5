/**
 * What the interop tier runs besides Node: a Python with the real Lance clients, and a
 * server that speaks the API of Google Cloud Storage. Both are made once and kept in the
 * user's cache folder, under a hash of what they are made from.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join, resolve } from "node:path";

const here = import.meta.dirname;
const pythonMin = [3, 11] as const;
const needsPython = `Python ${pythonMin.join(".")} or later with its venv module, as python3`;
const needsGo = "Go 1.26 or later, as go";

/** @returns The path of a Python that has all that `requirements.txt` names. */
export function preparePython(): string {
  const version = read("python3", ["-c", "import platform; print(platform.python_version())"], needsPython);
  if (isOlder(version, pythonMin)) throw new Error(`the interop tests need ${needsPython}: this one is ${version}`);
  const [requirements, constraints] = [join(here, "requirements.txt"), join(here, "constraints.txt")];
  return prepare("venv", "bin/python", [version, readFileSync(requirements), readFileSync(constraints)], (folder) => {
    run("python3", ["-m", "venv", folder], needsPython);
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(join(folder, "bin/python"), [...pip, "-c", constraints, "-r", requirements], "the packages of PyPI");
  });
}

/** @returns The path of the fake-gcs-server program. */
export function prepareFakeGcsServer(): string {
  const module = join(here, "fake-gcs-server");
  const pins = ["go.mod", "go.sum"].map((name) => readFileSync(join(module, name)));
  return prepare("gcs", "fake-gcs-server", pins, (folder) => {
    run("go", ["-C", module, "build", "-o", `${folder}/`, "github.com/fsouza/fake-gcs-server"], needsGo);
  });
}

/**
 * Makes a folder of the cache unless it is there, and finds a program in it. A venv knows its
 * own path and cannot be moved, so a folder is made under a name of its own and stays there.
 * The link to it is made when it is whole, so that neither a break-off nor a second run
 * leaves half of one.
 */
function prepare(
  name: string,
  program: string,
  pins: readonly (string | Buffer)[],
  make: (folder: string) => void,
): string {
  const cache = resolve(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "tiltyard");
  const hash = createHash("sha256");
  for (const pin of pins) hash.update(pin).update("\0");
  const link = join(cache, `${name}-${hash.digest("hex").slice(0, 16)}`);
  // The program itself is looked for: what it links to may have been removed since.
  if (existsSync(join(link, program))) return join(realpathSync(link), program);

  const folder = `${link}.${process.pid}-${Date.now()}`;
  process.stderr.write(`interop: making ${folder}\n`);
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

function isOlder(version: string, than: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major < than[0] || (major === than[0] && minor < than[1]);
}

function run(command: string, args: readonly string[], needs: string): void {
  const { error, status } = spawnSync(command, args, { stdio: ["ignore", "inherit", "inherit"] });
  if (error !== undefined || status !== 0)
    throw failure(command, args, needs, error?.message ?? `it ended with ${status}`);
}

function read(command: string, args: readonly string[], needs: string): string {
  const { error, status, stdout } = spawnSync(command, args, {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
  });
  if (error !== undefined || status !== 0)
    throw failure(command, args, needs, error?.message ?? `it ended with ${status}`);
  return stdout.trim();
}

function failure(command: string, args: readonly string[], needs: string, what: string): Error {
  return new Error(`the interop tests need ${needs}: ${[command, ...args].join(" ")}: ${what}`);
}
