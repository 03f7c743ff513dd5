import type { Generated } from "kysely";

/**
 * The catalog's tables, the same on every database. Times are milliseconds since the
 * epoch; maps and lists are JSON text; paths of namespaces are as `path.ts` writes them.
 */
export interface Schema {
  namespaces: {
    path: string;
    /** The path of the namespace that it is in; null for the root. */
    parent: string | null;
    name: string;
    properties: string;
    created_at: number;
  };
  tables: {
    id: Generated<number>;
    namespace: string;
    name: string;
    /** A URI without a trailing slash; no two tables share or contain each other's. */
    location: string;
    properties: string;
    created_at: number;
    /** The path of a dropped table, which has no name any more; null for all others. */
    dropped_from: string | null;
    dropped_at: number | null;
  };
  /** A row for every branch that has or had version records, `main` included. */
  branches: {
    table_id: number;
    name: string;
    /** The highest version that was ever committed, deleted records included. */
    highest_version: number;
  };
  table_versions: {
    table_id: number;
    branch: string;
    version: number;
    /** The manifest's final file name inside the branch's `_versions` folder. */
    manifest_name: string;
    /** The file name that the client committed; it differs from `manifest_name` for a staged manifest. */
    committed_name: string;
    /** 0 while the manifest still waits under `committed_name`, 1 when it has its final name. */
    finished: 0 | 1;
    manifest_size: number | null;
    e_tag: string | null;
    metadata: string | null;
    timestamp_millis: number;
    /** The audit record of the commit. */
    transaction_id: string;
  };
  /** Who did what to which object. Rows are appended; triggers refuse all else, see migration 0005. */
  audit_records: OpenedRow;
  /** What became of a record that was opened as Running, or whose effect was taken back. Appended, too. */
  audit_outcomes: {
    record_id: string;
    status: string;
    reason: string | null;
    recorded_at: number;
  };
  /** Says up to when the audit was deleted on purpose: only records that are older can be deleted. */
  audit_retention: { deleted_before: number };
  /** What was opened as Queued, for others to carry out and to move on. */
  jobs: OpenedRow & { updated_at: number };
  api_keys: { id: string; principal: string; hash: string; created_at: number };
  grants: { principal: string; namespace: string; role: string };
  /** Locations of dropped tables whose objects are still to be deleted. */
  pending_deletions: { location: string; created_at: number };
}

/** What audit records and jobs have in common; their ids are of one space. */
interface OpenedRow {
  id: string;
  /** Where it is addressed: the namespace that it happens in. */
  namespace: string;
  operation: string;
  /** The identifiers that it changes, as a JSON list of lists. */
  objects: string;
  principal: string;
  request_id: string;
  status: string;
  properties: string;
  created_at: number;
}
