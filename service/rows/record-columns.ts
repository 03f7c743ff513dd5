import { hasKind, mainBranch } from "@tiltyard/protocol";
import type { StoreDeps } from "../commits/deps.ts";
import { readManifest } from "../commits/read.ts";
import { columnPathsOf } from "../lance/manifest.ts";
import type { Log } from "../log.ts";
import { listUnreadTables, recordColumns, type UnreadTable } from "../store/columns.ts";
import { findVersion, isHidden, latestVersion } from "../store/versions.ts";

const readAtOnce = 8;
/** The number of failures after which a round ends, because the object store may be unavailable. */
const failuresMax = 50;
/** The maximum size of a manifest. Tables with more files are found by their name only. */
const searchedManifestBytesMax = 32 * 1024 * 1024;

/** Creates a function that records changed columns of placed versions. A failed table waits for the next round. */
export function createColumnRecorder({ store, storage, log }: StoreDeps & { readonly log: Log }) {
  /** A round continues after the last table of the previous one, because the same tables may fail again. */
  let after = 0;

  /** Returns undefined if the latest version is not in place yet. */
  async function columnsOf(table: UnreadTable): Promise<readonly string[] | undefined> {
    const main = { table, branch: mainBranch };
    const highest = await findVersion(store.read, main, table.highestVersion);
    if (highest !== undefined && isHidden(highest)) return undefined;
    const latest = await latestVersion(store.read, main);
    if (latest === undefined) return [];
    if (latest.state !== "finished") return undefined;
    try {
      return await readManifest({ storage }, table, latest, columnPathsOf, { bytesMax: searchedManifestBytesMax });
    } catch (error) {
      // The manifest is missing, too large or in another format, which a retry does not change.
      if (hasKind(error, "ConcurrentModification", "InvalidTableState", "Unsupported")) return [];
      throw error;
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
