import { randomUUIDv7 } from "node:crypto";
import { parseLocation } from "../storage/location.ts";
import type { Storage } from "../storage/storage.ts";
import type { Store } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { insertTransaction } from "../store/transactions.ts";
import { findHighestVersion, insertVersion, latestVersion } from "../store/versions.ts";
import { manifestName, type NamingScheme, versionsFolder } from "./manifest.ts";

/** The operation and the principal that the audit names for a version that no request committed. */
const operation = "AdoptTableVersion";
const principal = "unknown";

/**
 * Takes up versions that a writer put into the table's folder itself, as Lance does without
 * a catalog. Geneva's backfill commits its columns this way, also when it works through a
 * catalog: without this its work would be invisible, and the next commit would bury it.
 *
 * Only the version after the latest is looked for, and only a manifest that is not older
 * than the latest one is taken for it: an older one is left from records that were deleted.
 */
export async function adoptExternalCommits(
  { store, storage }: { readonly store: Store; readonly storage: Storage },
  table: TableRecord,
  branch: string,
): Promise<void> {
  const location = parseLocation(table.location);
  const folder = versionsFolder(location, branch);
  const objects = await storage.at(location);
  for (;;) {
    const latest = await latestVersion(store.read, table.id, branch);
    if (latest === undefined || !latest.finished) return;
    const highest = await findHighestVersion(store.read, table.id, branch);
    if (highest !== latest.version) return;

    const version = latest.version + 1;
    const name = manifestName(version, schemeOf(latest.manifestName));
    const next = await objects.find(`${folder}/${name}`);
    if (next === undefined) return;
    const present = await objects.find(`${folder}/${latest.manifestName}`);
    if (present === undefined || next.modifiedAtMillis < present.modifiedAtMillis) return;

    const transactionId = randomUUIDv7();
    await store.write(async (session) => {
      if ((await findHighestVersion(session, table.id, branch)) !== latest.version) return;
      await insertVersion(session, {
        tableId: table.id,
        branch,
        version,
        manifestName: name,
        committedName: name,
        finished: true,
        manifestSize: undefined,
        eTag: undefined,
        metadata: undefined,
        timestampMillis: Math.round(next.modifiedAtMillis),
        transactionId,
      });
      await insertTransaction(session, {
        id: transactionId,
        namespace: table.identifier.slice(0, -1),
        operation,
        objects: [table.identifier],
        principal,
        requestId: "",
        status: "Succeeded",
        properties: { branch, version: String(version) },
      });
    });
  }
}

/** V2 names have twenty digits, always. */
function schemeOf(name: string): NamingScheme {
  return /^\d{20}\./.test(name) ? "V2" : "V1";
}
