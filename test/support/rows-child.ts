import { readdirSync, readFileSync } from "node:fs";

/** Returns the processes that run the Lance library for a process. Only Linux lists them. */
export function rowsChildrenOf(parent: number | undefined): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const isChild = readFileSync(`/proc/${pid}/status`, "utf8").includes(`\nPPid:\t${parent}\n`);
        return isChild && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("lance-worker/main");
      } catch {
        return false;
      }
    })
    .map(Number);
}
