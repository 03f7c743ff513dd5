import type { Generated } from "kysely";

/**
 * The tables of the catalog, which are the same on every database. Times are milliseconds since the epoch, maps and
 * lists are JSON text, and paths of namespaces have the format of `path.ts`.
 */
export interface Schema {
  namespaces: {
    path: string;
    /** The path of the parent namespace; null for the root. */
    parent: string | null;
    name: string;
    properties: string;
    created_at: number;
  };
  tables: {
    id: Generated<number>;
    namespace: string;
    name: string;
    /** A URI without a trailing slash. No two tables share a location or have one inside the other's. */
    location: string;
    properties: string;
    created_at: number;
    /** The former path of a dropped table, which has no name; null for all others. */
    dropped_from: string | null;
    dropped_at: number | null;
    /** A mark of tables that may have rows in `automations`, so that commits to other tables skip the lookup. */
    is_automated: Generated<0 | 1>;
  };
  /** The branches that have or had version records, including `main`. */
  branches: {
    table_id: number;
    name: string;
    /** Incremented when all records of the branch are deleted at once, after which its version numbers restart. */
    generation: number;
    /** The first version of this generation; -1 without any, -2 if unknown. */
    first_version: number;
    /** The highest version ever recorded in this generation, including deleted records; -1 without any. */
    highest_version: number;
    /** The highest version of all earlier generations, whose manifests may still exist; -1 without any. */
    left_over_version: number;
    /** The highest version when the columns of the table were recorded; negative if they are unknown. Used for `main`. */
    columns_version: Generated<number>;
    /** The number of withdrawn versions. An earlier listing of the folder may be outdated after a withdrawal. */
    withdrawals: Generated<number>;
  };
  /** The paths of the columns of each table, for searches, with a U+001F around each. */
  table_columns: { table_id: number; names: string };
  /** The version records of all generations. Those of earlier generations identify leftover manifests. */
  table_versions: {
    table_id: number;
    branch: string;
    generation: number;
    version: number;
    /** The final file name of the manifest in the `_versions` folder of the branch. */
    manifest_name: string;
    /** The file name that the client committed, which differs from `manifest_name` for a staged manifest. */
    committed_name: string;
    /** The object store's identity of the manifest's content (`StoredObject.identity`); null in rows of earlier releases. */
    identity: string | null;
    /** 0 while the manifest is staged as `committed_name`, 1 when it has its final name. */
    finished: 0 | 1;
    /**
     * 1 before the commit point of a batch of versions, 2 once the batch is being rolled back and the version will
     * never exist.
     */
    held: 0 | 1 | 2;
    manifest_size: number | null;
    e_tag: string | null;
    metadata: string | null;
    timestamp_millis: number;
    /** The audit record of the commit. */
    transaction_id: string;
  };
  /**
   * Principals, operations and objects of all changes. Rows are appended; triggers reject everything else (migration
   * 0005).
   */
  audit_records: OpenedRow;
  /** The outcomes of records that were opened as Running or whose commit was withdrawn. This table is append-only too. */
  audit_outcomes: {
    record_id: string;
    status: string;
    reason: string | null;
    recorded_at: number;
  };
  /** The time up to which the audit may be deleted. The database rejects the deletion of later records. */
  audit_retention: { deleted_before: number };
  /** The jobs. Their `properties` are those that clients set; the catalog does not read them. */
  jobs: OpenedRow & {
    updated_at: number;
    /** The id of the API key that opened the job; null if the catalog itself or a token opened it. */
    api_key: string | null;
    /** The table of the job; null if it was dropped before the migration of the job. */
    table_id: number | null;
    /** The fields of the request that opened the job; null for a job of the previous release, in `properties` then. */
    parameters: string | null;
    /** The number of the latest attempt; 0 before the first. */
    attempt: Generated<number>;
    /** The random text of the process that runs the latest attempt; null before its start. */
    claim: string | null;
    started_at: number | null;
    heartbeat_at: number | null;
    ended_at: number | null;
    progress: Generated<string>;
    result: Generated<string>;
    /** The reason of a failure or a cancellation, or the reason why an open job waits. */
    reason: string | null;
    /** The place where the latest attempt runs. */
    platform: Generated<string>;
  };
  /** The attempts at jobs. They are deleted with their job. */
  job_attempts: {
    job_id: string;
    number: number;
    claimed_at: number;
    started_at: number | null;
    ended_at: number | null;
    reason: string | null;
    log_tail: string;
    platform: string;
    /** The progress over time: a JSON array of pairs of a time and a number of rows. */
    samples: string;
  };
  api_keys: {
    id: string;
    principal: string;
    hash: string;
    created_at: number;
    /** The id of the job whose attempt owns the key; null for all other keys. */
    job: string | null;
    attempt: number | null;
    /** The principal that created the key of a job; null for all other keys. */
    creator: string | null;
  };
  /** The locations of deregistered tables with the paths of their names. Other tables must not contain their objects. */
  reserved_locations: { location: string; identifier: string };
  /** The tokens of development authentication. Each is valid until it expires or its key is deleted. */
  access_tokens: { hash: string; api_key: string; expires_at: number };
  grants: { principal: string; namespace: string; role: string };
  /** Deferred work. Finished work has no row. */
  tasks: {
    kind: string;
    /** The object of the work, in the format of the kind. */
    subject: string;
    /** The number of started attempts. */
    attempts: Generated<number>;
    not_before: number;
    /** The claim of the worker; null without one. */
    claim: string | null;
    /** The expiry of the claim. */
    claimed_until: Generated<number>;
    /** The reason of the last failure. */
    reason: string | null;
    created_at: number;
  };
  /** The rules that open jobs when a commit adds rows. They are deleted with their table. */
  automations: {
    /** The table whose new rows open the jobs. */
    table_id: number;
    /** An `AutomationKind`. */
    kind: string;
    /** A column of the table or the id of a view. */
    target: string;
    /** The principal of the jobs. */
    principal: string;
    /** The latest version of the table when the latest of these jobs was opened. */
    seen_version: number;
    /** The highest id of any fragment up to that version. New rows have higher ones. */
    seen_fragment: number;
  };
  /** The exclusive holders of names, with the expiry of their leases. */
  leases: { name: string; holder: string; held_until: number };
  /** A single row with the time of the latest reading of the clock by any process. */
  clock: { id: number; seen_at: number };
}

/** The columns that audit records and jobs share. Their ids are unique across both tables. */
interface OpenedRow {
  id: string;
  /** The namespace of the objects. */
  namespace: string;
  operation: string;
  /** The identifiers of the changed objects, as a JSON list of lists. */
  objects: string;
  principal: string;
  request_id: string;
  status: string;
  properties: string;
  created_at: number;
}
