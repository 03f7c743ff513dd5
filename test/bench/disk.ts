import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { read } from "../support/tools.ts";
import { mediansOf } from "./table.ts";

/**
 * The methods to persist a group of manifests and their names: one sync of the file system, which Node does not
 * offer, or a sync of each file and folder in as many threads as Node has for them.
 */
export const diskWays = ["syncfs", "each"] as const;
export type DiskWay = (typeof diskWays)[number];

/** The measurements of the disk in each round. */
export type DiskRounds = Readonly<Record<DiskWay, readonly DiskMeasurement[]>>;
/** The medians of the rounds. */
export type DiskMedians = Readonly<Record<DiskWay, DiskMeasurement>>;

export type DiskMeasurement = z.infer<typeof Printed>;

/** The output of disk.py. */
const Printed = z.object({
  requests: z.number(),
  requestsPerSecond: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  cpuUsPerRequest: z.number(),
});

/**
 * Measures the limit of the disk: the number of versions per second that a program without any other work commits, with
 * one commit in flight per connection. The program shares all work that can be shared. It syncs the staged manifests of
 * the commits in flight together, records them in one transaction of SQLite (WAL, synchronous=FULL), links them to
 * their final names, and acknowledges all of them. The rest of a group is part of the next one: the next sync persists its
 * final names, then its staged names are deleted, and the next transaction records that.
 *
 * No commit can be faster, because it may be acknowledged only after its manifest, the name of the manifest and its
 * record are durable, and because a staged name may be deleted only after the final one is durable. The measurement has
 * no network, no validation, no audit and no other readers. As with real clients, the staging of manifests is not
 * measured.
 *
 * @param python Any Python 3, which can call `syncfs`.
 */
export async function measureDisk(
  python: string,
  folder: string,
  way: DiskWay,
  { connections, seconds }: { readonly connections: number; readonly seconds: number },
): Promise<DiskMeasurement> {
  // The files remain until the benchmark ends, because their deletion would occupy the disk during other measurements.
  const files = join(folder, crypto.randomUUID());
  mkdirSync(files, { recursive: true });
  const args = [join(import.meta.dirname, "disk.py"), files, way, String(connections), String(seconds)];
  const printed = read(python, args, "Python on Linux");
  return Printed.parse(JSON.parse(printed));
}

/** Returns the medians; undefined without a measurement. */
export function diskMediansOf(rounds: DiskRounds | undefined): DiskMedians | undefined {
  if (rounds === undefined) return undefined;
  const names = Printed.keyof().options;
  return { syncfs: mediansOf(rounds.syncfs, names), each: mediansOf(rounds.each, names) };
}
