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

/** The settings of the tests. All others of the environment are Tiltyard's and would change the programs under test. */
const testSettings = /^TILTYARD_(?:TEST|E2E|FAULTS|MODEL)_/;

/**
 * Creates the temporary folder of a run for this process and those that it starts, and removes the settings of Tiltyard from their
 * environment. Most of the processes run the same program, so the run also keeps Node's compile cache for them and for the next run.
 *
 * @returns A function that deletes the folder. It throws if a program that outlived the tests still writes there.
 */
export function useTemporaryFolderIn(parent: string): () => Promise<void> {
  const before = { ...process.env };
  const folder = mkdtempSync(join(parent, "tiltyard-"));
  // PostgreSQL runs as another user than root and must reach its folder below.
  chmodSync(folder, 0o711);
  for (const name of Object.keys(before))
    if (name.startsWith("TILTYARD_") && !testSettings.test(name)) delete process.env[name];
  process.env.TMPDIR = folder;
  process.env.NODE_COMPILE_CACHE ??= resolve(import.meta.dirname, "../../.cache/compiled");
  return async () => {
    for (const name of Object.keys(process.env)) if (!Object.hasOwn(before, name)) delete process.env[name];
    Object.assign(process.env, before);
    // Deletes asynchronously: otherwise Vitest does not notice in time that its workers ended.
    await rm(folder, { recursive: true, maxRetries: 5, retryDelay: 200 });
  };
}
