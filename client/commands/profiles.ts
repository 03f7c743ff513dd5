import { mkdirSync, rmSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf, ownValue } from "@tiltyard/protocol";
import writeFileAtomic from "write-file-atomic";
import { z } from "zod";
import { UsageError } from "./exit-codes.ts";
import { readText } from "./target.ts";

const Profiles = z.record(z.string(), z.object({ url: z.string(), apiKey: z.string().optional() }));
type Profiles = z.infer<typeof Profiles>;
export type Profile = Profiles[string];

/** The profile of commands that specify neither a catalog nor a profile. */
export const defaultProfile = "default";

/** The time in milliseconds after which a lock counts as left over. A change takes a few milliseconds. */
const lockMs = 5_000;
const lockPollMs = 20;

/** Returns the file of all profiles, which only its owner may read. */
export function profilesFile(): string {
  return join(process.env.XDG_CONFIG_HOME || join(homedir(), ".config"), "tiltyard", "profiles.json");
}

/** Returns a stored profile; undefined if none has the name. @throws UsageError for an unusable file. */
export function findProfile(name: string): Profile | undefined {
  return ownValue(readProfiles(), name);
}

/** Stores a profile, or deletes it if the value is undefined. @throws UsageError for an unusable file. */
export async function storeProfile(name: string, profile: Profile | undefined): Promise<void> {
  const file = profilesFile();
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  await alone(`${file}.lock`, () => {
    const others = Object.fromEntries(Object.entries(readProfiles()).filter(([other]) => other !== name));
    const profiles: Profiles = profile === undefined ? others : { ...others, [name]: profile };
    writeFileAtomic.sync(file, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  });
}

/** Runs a change while no other process runs one, so that two logins keep the profiles of both. */
async function alone(lock: string, change: () => void): Promise<void> {
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      const since = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
      // A process that was killed left its lock.
      if (Math.abs(Date.now() - since) > lockMs) rmSync(lock, { recursive: true, force: true });
      await sleep(lockPollMs);
    }
  }
  try {
    change();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function readProfiles(): Profiles {
  const file = profilesFile();
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return {};
  if ((stats.mode & 0o077) !== 0) throw new UsageError(`${file} holds keys and others may read it: chmod 600 ${file}`);
  const content = readText(file);
  try {
    return Profiles.parse(JSON.parse(content));
  } catch (error) {
    throw new UsageError(`${file} is damaged: delete it and sign in again with tiltyard login URL`, { cause: error });
  }
}
