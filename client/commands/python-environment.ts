import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isAtLeast } from "@tiltyard/platform";
import writeFileAtomic from "write-file-atomic";
import type { Progress } from "./output.ts";

const pythonMin = [3, 11] as const;
const install = `install Python ${pythonMin.join(".")} or later.`;
const installVenv = "install its venv module, on Debian and Ubuntu with apt-get install python3-venv.";

/**
 * Creates a Python environment with the packages of a requirements file. The environment is stored in the cache of the
 * user, one for each content of the file and version of Python.
 *
 * @returns The folder of its programs.
 * @throws Error with one sentence about the missing prerequisite.
 */
export async function preparePython(requirements: string, progress: Progress, signal: AbortSignal): Promise<string> {
  const version = pythonVersion();
  const content = readFileSync(requirements);
  const state = createHash("sha256").update(version).update(content).digest("hex").slice(0, 12);
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  const folder = join(cache, "tiltyard", `python-${state}`);
  const done = join(folder, "done");
  if (existsSync(done) && readFileSync(done, "utf8") === version) return join(folder, "bin");

  // An interrupted run leaves an incomplete environment.
  rmSync(folder, { recursive: true, force: true });
  progress.show(`creating a Python environment in ${folder}`);
  const venv = await run(["python3", "-m", "venv", folder], () => {}, signal);
  if (venv.code !== 0) throw new Error(`python3 cannot create a virtual environment: ${installVenv}`);

  const packages = content.toString().match(/^[^#\s]/gm)?.length ?? 0;
  let collected = 0;
  const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off", "-r", requirements];
  const pipRun = await run([join(folder, "bin/python"), ...pip], onLine, signal);
  if (pipRun.code !== 0) {
    const reason = pipRun.lines.findLast((line) => line.startsWith("ERROR")) ?? pipRun.lines.at(-1) ?? "";
    throw new Error(`pip cannot install the Python packages of the quickstart: ${reason}`);
  }
  writeFileAtomic.sync(done, version);
  return join(folder, "bin");

  function onLine(line: string): void {
    const [, name] = /^Collecting (\S+)/.exec(line) ?? [];
    if (name !== undefined) progress.show(`Python packages: ${++collected}/${packages} ${name}`);
    if (line.startsWith("Installing"))
      progress.show(`installing ${packages} Python packages, which takes a minute or more`);
  }
}

/** Returns the version of python3 on the PATH. @throws Error if it is missing or too old. */
export function pythonVersion(): string {
  const { error, stdout, status } = spawnSync("python3", ["-c", "import platform; print(platform.python_version())"], {
    encoding: "utf8",
  });
  if (error !== undefined) throw new Error(`No python3 on the PATH: ${install}`);
  if (status !== 0) throw new Error(`python3 does not run: ${install}`);
  const version = stdout.trim();
  if (!isAtLeast(version, pythonMin)) throw new Error(`python3 is Python ${version}: ${install}`);
  return version;
}

async function run(
  [program = "", ...args]: readonly string[],
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<{ readonly code: number | null; readonly lines: readonly string[] }> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], signal });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on("line", (line) => {
      lines.push(line);
      onLine(line);
    });
  const [code] = await once(child, "close");
  return { code, lines };
}
