/**
 * Temporary files of tests. All are below one folder per run, which the run deletes at its end. Programs that tests start also use it.
 */
import { chmodSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Creates an empty folder that exists until the end of the run. @param name The prefix of its name. */
export function temporaryFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), name));
}

/** Creates the temporary folder of a run on the disk. @returns A function that deletes it. */
export default function useTemporaryFolder(): () => Promise<void> {
  return useTemporaryFolderIn(tmpdir());
}

/**
 * Creates the temporary folder of a run for this process and those that it starts. Most of these run the same program, so the run also
 * keeps Node's compile cache for them and for the next run.
 *
 * @returns A function that deletes the folder. It throws if a program that outlived the tests still writes there.
 */
export function useTemporaryFolderIn(parent: string): () => Promise<void> {
  const { TMPDIR, NODE_COMPILE_CACHE } = process.env;
  const folder = mkdtempSync(join(parent, "tiltyard-"));
  // PostgreSQL runs as another user than root and must reach its folder below.
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  process.env.NODE_COMPILE_CACHE ??= resolve(import.meta.dirname, "../../.cache/compiled");
  return async () => {
    restore("TMPDIR", TMPDIR);
    restore("NODE_COMPILE_CACHE", NODE_COMPILE_CACHE);
    // Deletes asynchronously: otherwise Vitest does not notice in time that its workers ended.
    await rm(folder, { recursive: true, maxRetries: 5, retryDelay: 200 });
  };
}

function restore(variable: "TMPDIR" | "NODE_COMPILE_CACHE", value: string | undefined): void {
  if (value === undefined) delete process.env[variable];
  else process.env[variable] = value;
}
