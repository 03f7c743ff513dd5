import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** The faults of `faulty-writes.c`. */
export const faultKinds = ["KILL", "ENOSPC", "EIO"] as const;

/** Compiles the library that interrupts programs. @returns Its file. */
export function compileFaultyWrites(): string {
  const library = join(temporaryFolder("tiltyard-faulty-writes-"), "faulty-writes.so");
  execFileSync("gcc", ["-O1", "-shared", "-fPIC", "-o", library, join(import.meta.dirname, "faulty-writes.c"), "-ldl"]);
  return library;
}

/** Returns the environment of a program with a fault at one of its changes of files in a folder. */
export function withFault(
  library: string,
  folder: string,
  { kind, at }: { readonly kind: string; readonly at: number },
): Record<string, string> {
  return {
    LD_PRELOAD: library,
    FAULTY_WRITES_DIR: folder,
    FAULTY_WRITES_AT: `${at}`,
    FAULTY_WRITES_KIND: kind,
  };
}
