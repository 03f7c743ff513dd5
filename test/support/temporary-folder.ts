/**
 * What tests write to disk. All of it is below one folder a run, which is removed when the run
 * ends: programs that tests start put their temporary files there too.
 */
import { chmodSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** A new, empty folder that lives as long as the run of the tests. @param name How its name begins. */
export function temporaryFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), name));
}

/**
 * Makes the temporary folder of a run, for this process and those that it starts. Many of these
 * are one program over and over: what Node compiled for the first is kept for the others, and for the next run.
 *
 * @returns Removes it. Throws when something keeps it: a program that has outlived the tests, for one.
 */
export default function useTemporaryFolder(): () => Promise<void> {
  const { TMPDIR, NODE_COMPILE_CACHE } = process.env;
  const folder = temporaryFolder("tiltyard-");
  // PostgreSQL is run by another user than root, and has to find its own folder below.
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  process.env.NODE_COMPILE_CACHE ??= resolve(import.meta.dirname, "../../.cache/compiled");
  return async () => {
    restore("TMPDIR", TMPDIR);
    restore("NODE_COMPILE_CACHE", NODE_COMPILE_CACHE);
    // Many files: meanwhile Vitest has to see that its workers end, or it says that they did not in time.
    await rm(folder, { recursive: true, maxRetries: 5, retryDelay: 200 });
  };
}

function restore(variable: "TMPDIR" | "NODE_COMPILE_CACHE", value: string | undefined): void {
  if (value === undefined) delete process.env[variable];
  else process.env[variable] = value;
}
