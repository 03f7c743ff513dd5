import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { unusedPort } from "../../client/unused-port.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { prepare, run } from "../support/tools.ts";
import type { Path } from "./page.ts";

const checkout = resolve(import.meta.dirname, "../..");
/** The address of the catalog in docs/get-started/packages.md. */
const pagePort = "127.0.0.1:2333";
/** The timeout after which a hanging script is stopped. */
const scriptMs = 900_000;
const groupEndsMs = 30_000;

/** The supported versions of Node, by their versions of npm's package `node`. */
const node22 = "22.23.3";

/** Returns the folder of a Node program. */
export function folderOfNode(major: 22 | 24): string {
  if (major === 24) return dirname(process.execPath);
  const program = "node_modules/node/bin/node";
  const path = prepare("node", program, [node22], (folder) => {
    // npm recognizes the folder as a package only with this file.
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, allowScripts: { node: true } }));
    run("npm", ["install", "--silent", "--prefix", folder, `node@${node22}`], "npm");
  });
  return dirname(path);
}

export interface Followed {
  readonly folder: string;
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Follows the instructions of a page in an empty folder, with only the packages of this checkout. */
export async function follow({ files, commands }: Path, packages: string, node: 22 | 24): Promise<Followed> {
  const folder = temporaryFolder("stranger-");
  const port = await unusedPort();
  const here = (text: string) => text.replaceAll(pagePort, `127.0.0.1:${port}`);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), here(text));
  }
  const env = { ...strangersEnvironment(node), DIR: packages, TILTYARD_PORT: String(port) };
  return runScript(here(commands), folder, env);
}

/** Runs commands as in a terminal and stops their background processes. */
export async function runScript(commands: string, folder: string, env: NodeJS.ProcessEnv): Promise<Followed> {
  const child = spawn("bash", ["-euo", "pipefail", "-c", commands], {
    cwd: folder,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const overdue = setTimeout(() => child.kill(), scriptMs);
  const [code] = await once(child, "exit");
  clearTimeout(overdue);
  await endGroup(child);
  return { folder, code, stdout, stderr };
}

/** Returns the environment of a user with this version of Node and without this checkout. */
export function strangersEnvironment(node: 22 | 24): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) =>
      !/^(npm_(?!config_(registry|cache|userconfig)$)|NODE_(?!EXTRA_CA_CERTS$)|TILTYARD_|VITEST|INIT_CWD)/.test(name),
  );
  const path = (process.env.PATH ?? "").split(delimiter).filter((each) => !each.startsWith(checkout));
  return {
    ...Object.fromEntries(inherited),
    PATH: [folderOfNode(node), ...path].join(delimiter),
    npm_config_prefer_offline: "true",
    npm_config_audit: "false",
  };
}

async function endGroup({ pid }: ChildProcess): Promise<void> {
  const deadline = Date.now() + groupEndsMs;
  const signal = (name: NodeJS.Signals | 0): boolean => {
    try {
      return process.kill(-(pid ?? Number.NaN), name);
    } catch {
      return false;
    }
  };
  signal("SIGTERM");
  while (signal(0)) {
    if (Date.now() > deadline) signal("SIGKILL");
    await sleep(50);
  }
}
