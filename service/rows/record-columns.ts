import { CatalogError } from "@tiltyard/protocol";
import type { CommitParts } from "../commits/parts.ts";
import { readManifest } from "../commits/read.ts";
import { mainBranch } from "../domain/branch.ts";
import type { Log } from "../log.ts";
import { listUnreadTables, recordColumns, type UnreadTable } from "../store/columns.ts";
import { findVersion, latestVersion } from "../store/versions.ts";
import { columnPathsOf } from "./manifest-file.ts";

/** The number of manifests that are read at once. */
const readAtOnce = 8;
/** The number of failures after which a round ends, because the object store may be unavailable. */
const failuresMax = 50;
/** The maximum size of a manifest. Tables with more files are found by their name only. */
const searchedManifestBytesMax = 32 * 1024 * 1024;

interface Parts extends Pick<CommitParts, "store" | "storage"> {
  readonly log: Log;
}

/**
 * Creates a function that records the columns of all tables that have changed since their last record. It reads only
 * versions in place, and a table that cannot be read now waits for the next round.
 */
export function createColumnRecorder({ store, storage, log }: Parts) {
  /** A round continues after the last table of the previous one, because the same tables may fail again. */
  let after = 0;

  /** Returns undefined if the latest version is not in place yet. */
  async function columnsOf({ id, location, highestVersion }: UnreadTable): Promise<readonly string[] | undefined> {
    if ((await findVersion(store.read, id, mainBranch, highestVersion))?.held) return undefined;
    const latest = await latestVersion(store.read, id, mainBranch);
    if (latest === undefined) return [];
    if (!latest.finished) return undefined;
    let manifest: Uint8Array;
    try {
      manifest = await readManifest({ storage }, { location }, latest, searchedManifestBytesMax);
    } catch (error) {
      if (error instanceof CatalogError && isMissingOrTooLarge(error)) return [];
      throw error;
    }
    try {
      return columnPathsOf(manifest);
    } catch {
      // Another format, which a retry does not change.
      return [];
    }
  }

  return async (requireValid: () => void): Promise<void> => {
    let failures = 0;
    for (;;) {
      requireValid();
      const tables = await listUnreadTables(store.read, after, readAtOnce);
      const results = await Promise.allSettled(tables.map(columnsOf));
      await store.write(async (session) => {
        for (const [index, table] of tables.entries()) {
          const result = results[index];
          if (result?.status === "fulfilled" && result.value !== undefined)
            await recordColumns(session, table, result.value);
        }
      });
      for (const result of results)
        if (result.status === "rejected" && failures++ === 0)
          log.warn({ err: result.reason }, "the columns of a table cannot be read now");
      after = tables.length < readAtOnce ? 0 : (tables.at(-1)?.id ?? 0);
      if (after === 0 || failures >= failuresMax) return;
    }
  };
}

function isMissingOrTooLarge({ kind }: CatalogError): boolean {
  return kind === "ConcurrentModification" || kind === "InvalidTableState";
}
