import { lstat, mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "@tiltyard/protocol";
import { z } from "zod";

/**
 * The folder of Ray's sockets, as Ray itself chooses it. Their paths have at most about a hundred characters, which
 * TMPDIR may exceed.
 */
const shortTemporaryFolder = "/tmp";
const prefix = "ray-";
/** The file in the folder of a Ray that names the process which started it. */
const ownerFile = "tiltyard-owner.json";
const killPasses = 50;
const killPauseMs = 100;

/** A process of a host. The start distinguishes it from a later process with the same number. */
const Owner = z.object({ host: z.string(), pid: z.int(), start: z.string().optional() });

/** Creates the folder of a Ray that this process starts. */
export async function createRayFolder(parent = shortTemporaryFolder): Promise<string> {
  const folder = await mkdtemp(join(parent, prefix));
  const owner = { host: hostname(), pid: process.pid, start: await startOf(process.pid) };
  await writeFile(join(folder, ownerFile), JSON.stringify(owner));
  return folder;
}

/** Kills the processes of a Ray by their folder, and deletes the folder. */
export async function removeRayFolder(folder: string): Promise<void> {
  for (let pass = 0; pass < killPasses; pass += 1) {
    const found = await processesOf(folder);
    if (found.length === 0) break;
    for (const pid of found) kill(pid);
    await sleep(killPauseMs);
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Ends the Rays whose owners died, such as a killed runner, and deletes their folders. */
export async function removeOrphanedRays(parent = shortTemporaryFolder): Promise<void> {
  for (const name of (await readdir(parent)).filter((each) => each.startsWith(prefix)))
    await removeIfOrphaned(join(parent, name)).catch(ignoreOthers);
}

async function removeIfOrphaned(folder: string): Promise<void> {
  if (await isOrphaned(folder)) await removeRayFolder(folder);
}

/** Reports whether the owner died. A folder of another user could name any process, so it is never orphaned. */
async function isOrphaned(folder: string): Promise<boolean> {
  const { uid } = await lstat(folder);
  if (uid !== process.getuid?.()) return false;
  const text = await readFile(join(folder, ownerFile), "utf8").catch(() => undefined);
  const owner = text === undefined ? undefined : parseOwner(text);
  if (owner === undefined || owner.host !== hostname()) return false;
  return !isAlive(owner.pid) || (await startOf(owner.pid)) !== owner.start;
}

function parseOwner(text: string): z.infer<typeof Owner> | undefined {
  try {
    return Owner.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // The process of another user is alive, too.
    return codeOf(error) === "EPERM";
  }
}

/** Returns the time at which a process started; undefined without /proc. */
async function startOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  // The name of the program is in parentheses and may contain any characters.
  return text?.slice(text.lastIndexOf(")") + 2).split(" ")[19];
}

/** Returns the processes with the folder in their arguments or as their working directory; none without /proc. */
async function processesOf(folder: string): Promise<number[]> {
  const names = await readdir("/proc").catch(() => []);
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const isOurs = async (pid: number) => {
    const args = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => "");
    return pid !== process.pid && (includesPath(args, folder) || cwd.startsWith(`${folder}/`) || cwd === folder);
  };
  const ours = await Promise.all(pids.map(isOurs));
  return pids.filter((_, index) => ours[index]);
}

/** Reports whether arguments contain a folder or a path in it. A longer name of another folder does not count. */
function includesPath(args: string, folder: string): boolean {
  return args.split(/[\0 =]/).some((each) => each === folder || each.startsWith(`${folder}/`));
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has exited, or belongs to another user.
  }
}

/** Ignores errors about files of other users and about folders that another process deletes at the same time. */
function ignoreOthers(error: unknown): void {
  if (!["EACCES", "EPERM", "ENOENT", "ENOTEMPTY"].includes(codeOf(error) ?? "")) throw error;
}
