import { readdirSync, readFileSync } from "node:fs";

/**
 * The resources that a process, by default with its children, has used since its start and occupies now. All values are
 * NaN except on Linux.
 */
export interface ProcessUsage {
  readonly cpuMs: number;
  readonly residentMiB: number;
  /** The number of open files, sockets and pipes. */
  readonly handles: number;
}

/** The unit of Linux's processor times: one hundredth of a second for every program. */
const tickMs = 10;

export function readUsage(pid: number, { children = true } = {}): ProcessUsage {
  if (process.platform !== "linux") return { cpuMs: Number.NaN, residentMiB: Number.NaN, handles: Number.NaN };
  const all = [pid, ...(children ? childrenOf(pid) : [])].map(readOne);
  const sum = (figure: keyof ProcessUsage) => all.reduce((total, each) => total + each[figure], 0);
  return { cpuMs: sum("cpuMs"), residentMiB: sum("residentMiB"), handles: sum("handles") };
}

/** Returns the child processes of a process. */
export function childrenOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? [] : children.split(" ").map(Number);
}

function readOne(pid: number): ProcessUsage {
  // The name of the program is in parentheses and may contain spaces.
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  const residentKiB = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return {
    cpuMs: (Number(stat[11]) + Number(stat[12])) * tickMs,
    residentMiB: Number(residentKiB) / 1024,
    handles: readdirSync(`/proc/${pid}/fd`).length,
  };
}
