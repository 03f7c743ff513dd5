import { mainBranch } from "@tiltyard/protocol";
import type { VersionRecord } from "../../service/store/versions.ts";

/** Returns a version record of main whose manifest has its final name. */
export function versionRecord(tableId: number, version: number, fields: Partial<VersionRecord> = {}): VersionRecord {
  const name = `${version}.manifest`;
  return {
    tableId,
    branch: mainBranch,
    generation: 1,
    version,
    manifestName: name,
    committedName: name,
    state: "finished",
    identity: "identity",
    manifestSize: undefined,
    eTag: undefined,
    metadata: undefined,
    lanceOperation: undefined,
    rowCount: undefined,
    timestampMillis: 0,
    transactionId: "transaction",
    ...fields,
  };
}
