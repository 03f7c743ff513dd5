import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { canShare } from "../http/port.ts";

const processesMax = 4;
/** What each process may come to use where memory is limited: one of them opens tables, too. */
const memoryOfEachBytes = 512 * 1024 * 1024;
/** Where Linux tells a container what its control group may use. */
const cpuMaxFile = "/sys/fs/cgroup/cpu.max";
const defaultPeriodMicros = 100_000;

/** What this process and those that it starts may use. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly cores: number;
  /** Of the control group: microseconds in a period, such as `150000 100000`, or `max 100000`. */
  readonly cpuMax: string | undefined;
  /** Of the control group; undefined is no limit. */
  readonly memoryMaxBytes: number | undefined;
}

export function thisMachine(): Machine {
  const memoryMaxBytes = process.constrainedMemory();
  return {
    platform: process.platform,
    cores: availableParallelism(),
    cpuMax: existsSync(cpuMaxFile) ? readFileSync(cpuMaxFile, "utf8") : undefined,
    // Without a limit it is 0, or more than any machine has.
    memoryMaxBytes: memoryMaxBytes > 0 && memoryMaxBytes < Number.MAX_SAFE_INTEGER ? memoryMaxBytes : undefined,
  };
}

/** One process for each core, 4 at most; one with less than 2 CPUs, or less than 1 GiB of memory. */
export function processesFor(machine: Machine): number {
  if (!canShare(machine.platform)) return 1;
  const { cores, cpuMax = "max", memoryMaxBytes = Number.POSITIVE_INFINITY } = machine;
  const [quota = "max", period = defaultPeriodMicros] = cpuMax.trim().split(" ");
  const cpus = quota === "max" ? cores : Math.min(cores, Number(quota) / Number(period));
  return Math.max(1, Math.floor(Math.min(processesMax, cpus, memoryMaxBytes / memoryOfEachBytes)));
}
