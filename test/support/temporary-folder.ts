/**
 * What tests write to disk. All of it is below one folder a run, which is removed when the run
 * ends: programs that tests start put their temporary files there too.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A new, empty folder that lives as long as the run of the tests. @param name How its name begins. */
export function temporaryFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), name));
}

/**
 * Makes the temporary folder of a run, for this process and those that it starts.
 *
 * @returns Removes it. Throws when something keeps it: a program that has outlived the tests, for one.
 */
export default function useTemporaryFolder(): () => void {
  const before = process.env.TMPDIR;
  const folder = temporaryFolder("tiltyard-");
  // PostgreSQL is run by another user than root, and has to find its own folder below.
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  return () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    rmSync(folder, { recursive: true, maxRetries: 5, retryDelay: 200 });
  };
}
