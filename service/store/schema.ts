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
    /** Whether `automations` may have rows of it, so that commits of all others need not look. */
    is_automated: Generated<0 | 1>;
  };
  /** A row for every branch that has or had version records, `main` included. */
  branches: {
    table_id: number;
    name: string;
    /** Counts up when all records of the branch are deleted at once: its numbering starts again then. */
    generation: number;
    /** The first version of this generation; -1 when there was none, -2 when it is not known. */
    first_version: number;
    /** The highest version that was ever recorded in this generation, deleted records included; -1 when none was. */
    highest_version: number;
    /** The highest version of all earlier generations, whose manifests may still be there; -1 when there was none. */
    left_over_version: number;
    /** How often a version was withdrawn: what was read of the folder before may be gone since. */
    withdrawals: Generated<number>;
  };
  /** The records of all generations: those of earlier ones tell which manifests are left over from them. */
  table_versions: {
    table_id: number;
    branch: string;
    generation: number;
    version: number;
    /** The manifest's final file name inside the branch's `_versions` folder. */
    manifest_name: string;
    /** The file name that the client committed; it differs from `manifest_name` for a staged manifest. */
    committed_name: string;
    /** What the store calls the manifest's content (`StoredObject.identity`); null in rows of older releases. */
    identity: string | null;
    /** 0 while the manifest still waits under `committed_name`, 1 when it has its final name. */
    finished: 0 | 1;
    /**
     * 1 while a commit of several versions has not reached its commit point, 2 when it never will: the version
     * is not there.
     */
    held: 0 | 1 | 2;
    manifest_size: number | null;
    e_tag: string | null;
    metadata: string | null;
    timestamp_millis: number;
    /** The audit record of the commit. */
    transaction_id: string;
  };
  /** Principal, operation and objects. Rows are appended; triggers refuse all else, see migration 0005. */
  audit_records: OpenedRow;
  /** The outcome of a record that was opened as Running, or whose commit was withdrawn. Appended, too. */
  audit_outcomes: {
    record_id: string;
    status: string;
    reason: string | null;
    recorded_at: number;
  };
  /** Says up to when the audit was deleted on purpose: only records that are older can be deleted. */
  audit_retention: { deleted_before: number };
  /** What was opened as Queued, for clients to carry out and to update. */
  jobs: OpenedRow & {
    updated_at: number;
    /** The id of the API key that opened it; null when the catalog itself or a token opened it. */
    api_key: string | null;
  };
  api_keys: {
    id: string;
    principal: string;
    hash: string;
    created_at: number;
    /** The id of the job that one is for, and which attempt of it; null for all others. */
    job: string | null;
    attempt: number | null;
    /** The principal that created the key of a job; null for all others. */
    creator: string | null;
  };
  /** Locations of deregistered tables with the paths of their names: other tables must not contain their objects. */
  reserved_locations: { location: string; identifier: string };
  /** Tokens of development authentication, each valid until it expires or its key is gone. */
  access_tokens: { hash: string; api_key: string; expires_at: number };
  grants: { principal: string; namespace: string; role: string };
  /** Deferred work. A row goes when its work is done. */
  tasks: {
    kind: string;
    /** What is to be worked on, as the kind names it. */
    subject: string;
    /** How often it was begun. */
    attempts: Generated<number>;
    not_before: number;
    /** The claim of the worker; null without one. */
    claim: string | null;
    /** When that claim expires. */
    claimed_until: Generated<number>;
    /** Why the last attempt failed. */
    reason: string | null;
    created_at: number;
  };
  /** Jobs that are opened when a commit brings new rows. A row goes with its table. */
  automations: {
    /** The table whose new rows they are. */
    table_id: number;
    /** `backfill` or `refresh`. */
    kind: string;
    /** A column of the table, or the id of a view. */
    target: string;
    /** The principal that its jobs run for. */
    principal: string;
    /** The latest version of the table when the latest of these jobs was opened. */
    seen_version: number;
    /** The highest fragment that the table ever had then; new rows have higher ones. */
    seen_fragment: number;
  };
  /** The holder that alone may change what a name stands for, until when. */
  leases: { name: string; holder: string; held_until: number };
  /** One row: the time at which a process last looked at its clock. */
  clock: { id: number; seen_at: number };
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
