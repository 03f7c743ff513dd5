import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { isAtLeast } from "@tiltyard/protocol";
import type { Progress } from "./output.ts";

const pythonMin = [3, 11] as const;
const needsPython = `Python ${pythonMin.join(".")} or later with its venv module, as python3`;
const outputTailLength = 2_000;

/**
 * Makes a Python environment with what a file names, once for each state of that file, and for each Python.
 *
 * @returns The folder of its programs.
 * @throws Error With what is missing on this machine.
 */
export async function preparePython(requirements: string, progress: Progress, signal: AbortSignal): Promise<string> {
  const version = pythonVersion();
  const content = readFileSync(requirements);
  const state = createHash("sha256").update(version).update(content).digest("hex").slice(0, 12);
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  const folder = join(cache, "tiltyard", `python-${state}`);
  const done = join(folder, "done");
  if (existsSync(done)) return join(folder, "bin");

  // An environment that was interrupted half-way is made again.
  rmSync(folder, { recursive: true, force: true });
  progress.tell(`making a Python environment in ${folder}`);
  await run(["python3", "-m", "venv", folder], () => {}, signal, needsPython);
  const packages = content.toString().match(/^[^#\s]/gm)?.length ?? 0;
  let collected = 0;
  const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off", "-r", requirements];
  const onLine = (line: string) => {
    const [, name] = /^Collecting (\S+)/.exec(line) ?? [];
    if (name !== undefined) progress.tell(`Python packages: ${++collected}/${packages} ${name}`);
    if (line.startsWith("Installing")) progress.tell("Python packages: installing");
  };
  await run([join(folder, "bin/python"), ...pip], onLine, signal, "the packages of PyPI");
  writeFileSync(done, version);
  return join(folder, "bin");
}

function pythonVersion(): string {
  const { stdout, status } = spawnSync("python3", ["-c", "import platform; print(platform.python_version())"]);
  const version = stdout?.toString().trim() ?? "";
  if (status !== 0 || !isAtLeast(version, pythonMin))
    throw new Error(`this needs ${needsPython}${version === "" ? "" : `: this one is ${version}`}`);
  return version;
}

async function run(
  [program = "", ...args]: readonly string[],
  onLine: (line: string) => void,
  signal: AbortSignal,
  needed: string,
): Promise<void> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], signal });
  let tail = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      tail = (tail + text).slice(-outputTailLength);
      text.split("\n").forEach(onLine);
    });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} failed; this needs ${needed}:\n${tail.trim()}`);
}
