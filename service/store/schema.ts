import type {
  FunctionDefinition,
  FunctionInput,
  FunctionResult,
  Identifier,
  JobParameters,
  JobPriority,
  Role,
  TransactionStatus,
} from "@tiltyard/protocol";
import type { ColumnType, Generated, Selectable } from "kysely";

/** A column that may be null, which a record represents by undefined. */
type Optional<Value> = ColumnType<Value | undefined, Value | null | undefined, Value | null>;
type Texts = Readonly<Record<string, string>>;
type Counts = Readonly<Record<string, number>>;

/** A row of a table as a record: null is undefined, and maps, lists and flags are parsed (`records.ts`). */
export type RecordOf<Table extends keyof Schema> = Readonly<Selectable<Schema[Table]>>;

/**
 * The tables of the catalog, which are the same on every database. Times are milliseconds since the epoch, and paths of
 * namespaces have the format of `path.ts`. `records.ts` describes the names and the values of columns in the database.
 */
export interface Schema {
  namespaces: {
    path: string;
    /** The path of the parent namespace; undefined for the root. */
    parent: Optional<string>;
    name: string;
    properties: Texts;
    createdAtMillis: number;
  };
  tables: {
    id: Generated<number>;
    namespace: string;
    name: string;
    /** A URI without a trailing slash. No two tables share a location or have one inside the other's. */
    location: string;
    properties: Texts;
    createdAtMillis: number;
    /** The former path of a dropped table, which has no name; undefined for all others. */
    droppedFrom: Optional<string>;
    droppedAtMillis: Optional<number>;
    /** A mark of tables that may have rows in `automations`, so that commits to other tables skip the lookup. */
    isAutomated: Generated<boolean>;
    /** A mark of tables that have a row in `views`, so that requests for other tables skip the lookup. */
    isView: Generated<boolean>;
    /** Reports whether `properties` protect the table from being dropped. */
    isProtected: boolean;
  };
  /** The definitions of materialized views. They are deleted with their table. */
  views: {
    tableId: number;
    /** The path of the source; undefined if the source is not a table of this catalog. */
    source: Optional<string>;
    /** The principal that wrote the definition. The jobs of the view read the source only while this principal may. */
    definer: string;
    /** The definition as parameters of a refresh. */
    definition: Texts;
    /** The SHA-256 of the definition in the metadata of the table's schema; undefined if the schema has none. */
    schemaDigest: Optional<string>;
  };
  /** The branches that have or had version records, including `main`. */
  branches: {
    tableId: number;
    name: string;
    /** Incremented when all records of the branch are deleted at once, after which its version numbers restart. */
    generation: number;
    /** The first version of this generation; -1 without any. */
    firstVersion: number;
    /** The highest version ever recorded in this generation, including deleted records; -1 without any. */
    highestVersion: number;
    /** The highest version of all earlier generations, whose manifests may still exist; -1 without any. */
    leftOverVersion: number;
    /** The highest version when the columns of the table were recorded; negative if they are unknown. Used for `main`. */
    columnsVersion: Generated<number>;
    /** The number of withdrawn versions. An earlier listing of the folder may be outdated after a withdrawal. */
    withdrawals: Generated<number>;
  };
  /** The paths of the columns of each table, for searches, with a U+001F around each. */
  tableColumns: { tableId: number; names: string };
  /** The version records of all generations. Those of earlier generations identify leftover manifests. */
  tableVersions: {
    tableId: number;
    branch: string;
    generation: number;
    version: number;
    state: VersionState;
    /** The final file name of the manifest in the `_versions` folder of the branch. */
    manifestName: string;
    /** The file name that the client committed, which differs from `manifestName` for a staged manifest. */
    committedName: string;
    /** The object store's identity of the manifest's content (`StoredObject.identity`). */
    identity: string;
    manifestSize: Optional<number>;
    eTag: Optional<string>;
    metadata: Optional<Texts>;
    /** Lance's operation and the number of rows; undefined for a version of a writer outside the catalog. */
    lanceOperation: Optional<string>;
    rowCount: Optional<number>;
    timestampMillis: number;
    /** The audit record of the commit. */
    transactionId: string;
  };
  /** Principals, operations and objects of all changes. Rows are appended; triggers reject everything else. */
  auditRecords: OpenedRow;
  /** The outcomes of records that were opened as Running or whose commit was withdrawn. This table is append-only too. */
  auditOutcomes: {
    recordId: string;
    status: TransactionStatus;
    reason: Optional<string>;
    recordedAtMillis: number;
  };
  /** The time up to which the audit may be deleted. The database rejects the deletion of later records. */
  auditRetention: { deletedBefore: number };
  /** The jobs. Their `properties` are those that clients set; the catalog does not read them. */
  jobs: OpenedRow & {
    updatedAtMillis: number;
    /** The id of the API key that opened the job; undefined if the catalog itself or a token opened it. */
    apiKey: Optional<string>;
    /** The table that the job changes; undefined for the registration of a Function. */
    tableId: Optional<number>;
    /** The column that the job fills or indexes. */
    column: Optional<string>;
    /** The fields of the request that opened the job, which never change and may be long. */
    parameters: Readonly<JobParameters>;
    /** The principal that chose the parameters; undefined if it opened the job. */
    author: Optional<string>;
    priority: Generated<JobPriority>;
    /** The number of the latest attempt; 0 before the first. */
    attempt: Generated<number>;
    /** The number of attempts that a pause or the stop of a runner interrupted. */
    interruptions: Generated<number>;
    /** The time since which the job is paused. */
    pausedAtMillis: Optional<number>;
    /** The random text of the process that runs the latest attempt; undefined before its start. */
    claim: Optional<string>;
    startedAtMillis: Optional<number>;
    heartbeatAtMillis: Optional<number>;
    /** The time of the latest progress of the latest attempt, or of its start. */
    progressedAtMillis: Optional<number>;
    endedAtMillis: Optional<number>;
    progress: Generated<Counts>;
    result: Generated<Counts>;
    /** The reason of a failure or a cancellation, or the reason why an open job waits. */
    reason: Optional<string>;
    /** The place where the latest attempt runs. */
    platform: Generated<Texts>;
  };
  /** The attempts at jobs. They are deleted with their job. */
  jobAttempts: {
    jobId: string;
    number: number;
    claimedAtMillis: number;
    startedAtMillis: Optional<number>;
    endedAtMillis: Optional<number>;
    reason: Optional<string>;
    logTail: string;
    platform: Texts;
    /** The progress over time. */
    samples: readonly ProgressSample[];
  };
  /** The versions of Functions, which never change. They are deleted with their namespace. */
  functions: {
    id: string;
    namespace: string;
    name: string;
    version: number;
    definition: FunctionDefinition;
    /** The SHA-256 of the definition, which includes that of the content. */
    digest: string;
    /** The source in Base64. */
    content: string;
    principal: string;
    createdAtMillis: number;
    /** Columns may use the version, because its packages were installed once or it has none. */
    isReady: boolean;
    /** The latest job that installs the packages. The job may be deleted already. */
    jobId: Optional<string>;
  };
  /** The secrets of Functions. They are deleted with their namespace. */
  secrets: {
    namespace: string;
    name: string;
    /** The encrypted value with its authentication tag, in Base64. */
    ciphertext: string;
    /** In Base64. */
    nonce: string;
    keyId: string;
    createdAtMillis: number;
    updatedAtMillis: number;
  };
  /** The columns that Functions compute. They are deleted with their table or their Function. */
  functionBindings: {
    id: string;
    tableId: number;
    functionId: string;
    inputs: readonly FunctionInput[];
    outputs: readonly FunctionResult[];
    /** The arguments of the constructor of a class. */
    initialization: Readonly<Record<string, unknown>>;
  };
  /** The rows of each fragment that a Function has computed. */
  functionFragments: {
    bindingId: string;
    fragmentId: number;
    /** The digest of the input values, which the jobs compute. */
    signature: string;
    /** The number of computed rows from the first one on. */
    rows: number;
  };
  /** The rows that a Function could not compute. They are deleted with their job or their table. */
  functionErrors: {
    jobId: string;
    fragmentId: number;
    /** The offset in the fragment; -1 if it is unknown. */
    rowOffset: number;
    tableId: number;
    column: string;
    functionName: string;
    functionVersion: number;
    tableVersion: number;
    errorType: string;
    errorMessage: string;
    createdAtMillis: number;
  };
  /** The numbers of rows of fragments that a Function could not compute, including those without a recorded error. */
  functionFailures: { jobId: string; fragmentId: number; tableId: number; column: string; rows: number };
  apiKeys: {
    id: string;
    principal: string;
    hash: string;
    createdAtMillis: number;
    /** The id of the job whose attempt owns the key; undefined for all other keys. */
    job: Optional<string>;
    attempt: Optional<number>;
    /** The principal that created the key of a job; undefined for all other keys. */
    creator: Optional<string>;
  };
  /** The locations of deregistered tables, and the bases of tables. Other tables must not contain their objects. */
  reservedLocations: {
    location: string;
    /** The path of the name of the table, which follows a rename while the location is a base. */
    identifier: string;
    /** The table that has the location as a base; undefined for the location of a deregistered table, or a base of a purged one. */
    tableId: Optional<number>;
  };
  /** The tokens of development authentication. Each is valid until it expires or its key is deleted. */
  accessTokens: { hash: string; apiKey: string; expiresAtMillis: number };
  grants: { principal: string; namespace: string; role: Role };
  /** Deferred work. Finished work has no row. */
  tasks: {
    kind: TaskKind;
    /** The object of the work, in the format of the kind. */
    subject: string;
    /** The number of started attempts. */
    attempts: Generated<number>;
    notBefore: number;
    /** The claim of the worker; undefined without one. */
    claim: Optional<string>;
    /** The expiry of the claim. */
    claimedUntil: Generated<number>;
    /** The reason of the last failure. */
    reason: Optional<string>;
    createdAtMillis: number;
  };
  /** The rules that open jobs when a commit adds rows. They are deleted with their table. */
  automations: {
    /** The table whose new rows open the jobs. */
    tableId: number;
    kind: AutomationKind;
    /** A column of the table or the id of a view; empty for work on the whole table. */
    target: string;
    /** The principal of the jobs. */
    principal: string;
    /** The latest version of the table when the latest of these jobs was opened. */
    seenVersion: number;
    /** The highest id of any fragment up to that version. New rows have higher ones. */
    seenFragment: number;
    /** The time at which the latest of these jobs was opened, or else that of the rule. */
    sinceMillis: number;
  };
  /** The exclusive holders of names, with the expiry of their leases. */
  leases: { name: string; holder: string; heldUntil: number };
  /** A single row with the time of the latest reading of the clock by any process. */
  clock: { id: number; seenAtMillis: number };
  /** The times that no process saw, because the clock jumped or the catalog did not run. */
  clockJumps: { fromMillis: number; toMillis: number };
}

/**
 * The states of a version. A version of a batch is `held` before the commit point of the batch, and `condemned` once the
 * batch is being rolled back: both are hidden. A committed version is `recorded` until it is known that its manifest
 * durably has its final name, and then `finished`.
 */
export type VersionState = "held" | "condemned" | "recorded" | "finished";

/** The kinds of work that follows the response to the request that caused it. */
export const taskKinds = [
  "finish",
  "adopt",
  "purge",
  "forget",
  "retain",
  "automate",
  "end_record",
  "record_columns",
] as const;
export type TaskKind = (typeof taskKinds)[number];

/** The kinds of work that commits on a table cause. */
export type AutomationKind = "backfill" | "refresh" | "compact" | "build_index" | "clean_up";

/** The number of committed rows at a time, in milliseconds since the epoch. */
export type ProgressSample = readonly [atMillis: number, rows: number];

/** The columns that audit records and jobs share. Their ids are unique across both tables. */
interface OpenedRow {
  id: string;
  /** The namespace of the objects. */
  namespace: string;
  operation: string;
  /** The identifiers of the changed objects, the main one first. */
  objects: readonly Identifier[];
  principal: string;
  requestId: string;
  status: TransactionStatus;
  properties: Texts;
  createdAtMillis: number;
}
