import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { read } from "../support/tools.ts";
import { mediansOf } from "./table.ts";

/**
 * How a group of manifests and their names are made durable: by one sync of the file system, which Node does not offer,
 * or by a sync of each file and each folder, in as many threads as Node has for them.
 */
export const diskWays = ["syncfs", "each"] as const;
export type DiskWay = (typeof diskWays)[number];

/** What the disk gave in each round. */
export type DiskRounds = Readonly<Record<DiskWay, readonly DiskMeasurement[]>>;
/** Medians of the rounds. */
export type DiskMedians = Readonly<Record<DiskWay, DiskMeasurement>>;

export type DiskMeasurement = z.infer<typeof Printed>;

/** What disk.py prints. */
const Printed = z.object({
  requests: z.number(),
  requestsPerSecond: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  cpuUsPerRequest: z.number(),
});

/**
 * Measures what the disk gives: how many versions a second a program commits that does nothing else, and has as many
 * commits in flight as there are connections. It shares out all that can be shared: it syncs the staged manifests of
 * the commits in flight together, records them in one transaction of SQLite (WAL, synchronous=FULL), links them to their
 * final names, and acknowledges all of them. What is left of a group goes with the next one: its final names are durable
 * by the next sync, then its staged names are deleted, and the next transaction notes it.
 *
 * That is the limit, because no commit may be acknowledged before its manifest, the manifest's name and its record are
 * durable, and because a staged name may be deleted only when the final one is durable. There is no network, no
 * validation, no audit and no other reader. The manifests are staged off the clock, as clients do that.
 *
 * @param python Any Python 3: it reaches `syncfs`.
 */
export async function measureDisk(
  python: string,
  folder: string,
  way: DiskWay,
  { connections, seconds }: { readonly connections: number; readonly seconds: number },
): Promise<DiskMeasurement> {
  // Its files stay until the benchmark ends: the disk would be busy with the deletion while others are measured.
  const files = join(folder, crypto.randomUUID());
  mkdirSync(files, { recursive: true });
  const args = [join(import.meta.dirname, "disk.py"), files, way, String(connections), String(seconds)];
  const printed = read(python, args, "Python on Linux");
  return Printed.parse(JSON.parse(printed));
}

/** @returns undefined when nothing was measured. */
export function diskMediansOf(rounds: DiskRounds | undefined): DiskMedians | undefined {
  if (rounds === undefined) return undefined;
  const names = Printed.keyof().options;
  return { syncfs: mediansOf(rounds.syncfs, names), each: mediansOf(rounds.each, names) };
}
