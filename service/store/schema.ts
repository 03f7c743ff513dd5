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
    /** The transaction that committed the version. */
    transaction_id: string;
  };
  transactions: {
    id: string;
    /** Where the transaction is addressed: the namespace that it happened in. */
    namespace: string;
    operation: string;
    /** The identifiers that it changed, as a JSON list of lists. */
    objects: string;
    principal: string;
    request_id: string;
    status: string;
    properties: string;
    created_at: number;
    updated_at: number;
  };
  api_keys: { id: string; principal: string; hash: string; created_at: number };
  grants: { principal: string; namespace: string; role: string };
  /** Locations of dropped tables whose objects are still to be deleted. */
  pending_deletions: { location: string; created_at: number };
}
