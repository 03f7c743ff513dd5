/**
 * What the interop tier runs besides Node: a Python with the real Lance clients, and a
 * server that speaks the API of Google Cloud Storage. Both are made once and kept in the
 * user's cache folder, under a hash of what they are made from.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

const here = import.meta.dirname;
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "tiltyard");

/** @returns The path of a Python that has all that `requirements.txt` names. */
export function preparePython(): string {
  const pins = ["requirements.txt", "constraints.txt"].map((name) => join(here, name));
  const folder = prepare("python", pins, (target) => {
    run("python3", ["-m", "venv", target], "Python 3.11 or later, with its venv module");
    const [requirements = "", constraints = ""] = pins;
    run(join(target, "bin/python"), [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--disable-pip-version-check",
      "-c",
      constraints,
      "-r",
      requirements,
    ]);
  });
  return join(folder, "bin/python");
}

/** @returns The path of the fake-gcs-server program. */
export function prepareFakeGcsServer(): string {
  const module = join(here, "fake-gcs-server");
  const folder = prepare("fake-gcs-server", [join(module, "go.mod"), join(module, "go.sum")], (target) => {
    run(
      "go",
      ["-C", module, "build", "-o", join(target, "fake-gcs-server"), "github.com/fsouza/fake-gcs-server"],
      "Go 1.26 or later",
    );
  });
  return join(folder, "fake-gcs-server");
}

/** Makes a folder unless it is there already. A folder without its mark is half made, and is made anew. */
function prepare(name: string, pins: readonly string[], make: (target: string) => void): string {
  const hash = createHash("sha256");
  for (const pin of pins) hash.update(readFileSync(pin));
  const target = resolve(cache, `${name}-${hash.digest("hex").slice(0, 16)}`);
  const mark = join(target, ".complete");
  if (existsSync(mark)) return target;
  process.stderr.write(`preparing ${target}\n`);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  make(target);
  writeFileSync(mark, "");
  return target;
}

function run(command: string, args: readonly string[], needs = command): void {
  const { error, status } = spawnSync(command, args, { stdio: "inherit" });
  if (error !== undefined) throw new Error(`the interop tests need ${needs}: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}`);
}
