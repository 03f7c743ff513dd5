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
import { CamelCasePlugin, type Kysely, type RawBuilder, sql } from "kysely";
import {
  type AutomationKind,
  bigint,
  type Column,
  type Counts,
  clustered,
  countedKey,
  flag,
  integer,
  json,
  optional,
  type ProgressSample,
  type Table,
  type TaskKind,
  type Texts,
  table,
  text,
  type VersionState,
  withDefault,
} from "../column-types.ts";
import type { Dialect } from "../dialect.ts";
import { droppedNamespace } from "../path.ts";

type Statements = readonly RawBuilder<unknown>[];

const ofTable = "foreign key (table_id) references tables (id) on delete cascade";
const ofJob = "foreign key (job_id) references jobs (id) on delete cascade";
const ofNamespace = "foreign key (namespace) references namespaces (path) on delete cascade";

/** The columns that audit records and jobs share. Their ids are unique across both tables. */
const opened = {
  id: text(),
  /** The namespace of the objects. */
  namespace: text(),
  operation: text(),
  /** The identifiers of the changed objects, the main one first. */
  objects: json<readonly Identifier[]>(),
  principal: text(),
  requestId: text(),
  status: text<TransactionStatus>(),
  properties: json<Texts>(),
  createdAtMillis: bigint(),
};

/** The tables of the first release, in the order of their references. */
export const tables = {
  /** The namespaces, including the root and the hidden one of dropped tables. */
  namespaces: table("primary key (path), foreign key (parent) references namespaces (path)", {
    path: text(),
    /** The path of the parent namespace; undefined for the root. */
    parent: optional(text()),
    name: text(),
    properties: json<Texts>(),
    createdAtMillis: bigint(),
  }),
  tables: table(
    "unique (location), constraint tables_name unique (namespace, name), foreign key (namespace) references namespaces (path)",
    {
      id: countedKey,
      namespace: text(),
      name: text(),
      /** A URI without a trailing slash. No two tables share a location or have one inside the other's. */
      location: text(),
      properties: json<Texts>(),
      createdAtMillis: bigint(),
      /** The former path of a dropped table, which has no name; undefined for all others. */
      droppedFrom: optional(text()),
      droppedAtMillis: optional(bigint()),
      /** A mark of tables that may have rows in `automations`, so that commits to other tables skip the lookup. */
      isAutomated: withDefault(flag(), "0"),
      /** A mark of tables that have a row in `views`, so that requests for other tables skip the lookup. */
      isView: withDefault(flag(), "0"),
      /** Reports whether `properties` protect the table from being dropped. */
      isProtected: withDefault(flag(), "0"),
    },
  ),
  /** The definitions of materialized views. They are deleted with their table. */
  views: table(`primary key (table_id), ${ofTable}`, {
    tableId: integer(),
    /** The path of the source; undefined if the source is not a table of this catalog. */
    source: optional(text()),
    /** The principal that wrote the definition. The jobs of the view read the source only while this principal may. */
    definer: text(),
    /** The definition as parameters of a refresh. */
    definition: json<Texts>(),
    /** The SHA-256 of the definition in the metadata of the table's schema; undefined if the schema has none. */
    schemaDigest: optional(text()),
  }),
  /** The paths of the columns of each table, for searches, with a U+001F around each. */
  tableColumns: table(`primary key (table_id), ${ofTable}`, { tableId: integer(), names: text() }),
  /** The locations of deregistered tables, and the bases of tables. Other tables must not contain their objects. */
  reservedLocations: clustered("primary key (location)", {
    location: text(),
    /** The path of the name of the table, which follows a rename while the location is a base. */
    identifier: text(),
    /** The table that has the location as a base; undefined for the location of a deregistered table, or a base of a purged one. */
    tableId: optional(integer()),
  }),
  /** The branches that have or had version records, including `main`. */
  branches: clustered(`primary key (table_id, name), ${ofTable}`, {
    tableId: integer(),
    name: text(),
    /** Incremented when all records of the branch are deleted at once, after which its version numbers restart. */
    generation: integer(),
    /** The first version of this generation; -1 without any. */
    firstVersion: bigint(),
    /** The highest version ever recorded in this generation, including deleted records; -1 without any. */
    highestVersion: bigint(),
    /** The highest version of all earlier generations, whose manifests may still exist; -1 without any. */
    leftOverVersion: bigint(),
    /** The highest version when the columns of the table were recorded; negative if they are unknown. Used for `main`. */
    columnsVersion: withDefault(bigint(), "-1"),
    /** The number of withdrawn versions. An earlier listing of the folder may be outdated after a withdrawal. */
    withdrawals: withDefault(integer(), "0"),
  }),
  /** The version records of all generations. Those of earlier generations identify leftover manifests. */
  tableVersions: clustered(
    "primary key (table_id, branch, generation, version), foreign key (table_id, branch) references branches (table_id, name) on delete cascade",
    {
      tableId: integer(),
      branch: text(),
      generation: integer(),
      version: bigint(),
      state: text<VersionState>(),
      /** The final file name of the manifest in the `_versions` folder of the branch. */
      manifestName: text(),
      /** The file name that the client committed, which differs from `manifestName` for a staged manifest. */
      committedName: text(),
      /** The object store's identity of the manifest's content (`StoredObject.identity`). */
      identity: text(),
      manifestSize: optional(bigint()),
      eTag: optional(text()),
      metadata: optional(json<Texts>()),
      /** Lance's operation and the number of rows; undefined for a version of a writer outside the catalog. */
      lanceOperation: optional(text()),
      rowCount: optional(bigint()),
      timestampMillis: bigint(),
      /** The audit record of the commit. */
      transactionId: text(),
    },
  ),
  /**
   * Principals, operations and objects of all changes. The database keeps the audit append-only: only records older than
   * `auditRetention` can be deleted.
   */
  auditRecords: clustered("primary key (id)", opened),
  /** The outcomes of records that were opened as Running or whose commit was withdrawn. This table is append-only too. */
  auditOutcomes: clustered("primary key (record_id)", {
    recordId: text(),
    status: text<TransactionStatus>(),
    reason: optional(text()),
    recordedAtMillis: bigint(),
  }),
  /** The time up to which the audit may be deleted. The database rejects the deletion of later records. */
  auditRetention: table("primary key (deleted_before)", { deletedBefore: bigint() }),
  /** The jobs. Their `properties` are those that clients set; the catalog does not read them. */
  jobs: clustered("primary key (id)", {
    ...opened,
    updatedAtMillis: bigint(),
    /** The id of the API key that opened the job; undefined if the catalog itself or a token opened it. */
    apiKey: optional(text()),
    /** The table that the job changes; undefined for the registration of a Function. */
    tableId: optional(integer()),
    /** The column that the job fills or indexes. */
    column: optional(text()),
    /** The fields of the request that opened the job, which never change and may be long. */
    parameters: json<Readonly<JobParameters>>(),
    /** The principal that chose the parameters; undefined if it opened the job. */
    author: optional(text()),
    priority: withDefault(text<JobPriority>(), "'normal'"),
    /** The number of the latest attempt; 0 before the first. */
    attempt: withDefault(integer(), "0"),
    /** The number of attempts that a pause or the stop of a runner interrupted. */
    interruptions: withDefault(integer(), "0"),
    /** The time since which the job is paused. */
    pausedAtMillis: optional(bigint()),
    /** The random text of the process that runs the latest attempt; undefined before its start. */
    claim: optional(text()),
    /** The reason of a failure or a cancellation, or the reason why an open job waits. */
    reason: optional(text()),
    startedAtMillis: optional(bigint()),
    heartbeatAtMillis: optional(bigint()),
    /** The time of the latest progress of the latest attempt, or of its start. */
    progressedAtMillis: optional(bigint()),
    endedAtMillis: optional(bigint()),
    progress: withDefault(json<Counts>(), "'{}'"),
    result: withDefault(json<Counts>(), "'{}'"),
    /** The place where the latest attempt runs. */
    platform: withDefault(json<Texts>(), "'{}'"),
  }),
  /** The attempts at jobs. They are deleted with their job. */
  jobAttempts: clustered(`primary key (job_id, number), ${ofJob}`, {
    jobId: text(),
    number: integer(),
    claimedAtMillis: bigint(),
    startedAtMillis: optional(bigint()),
    endedAtMillis: optional(bigint()),
    reason: optional(text()),
    logTail: text(),
    platform: json<Texts>(),
    /** The progress over time. */
    samples: json<readonly ProgressSample[]>(),
  }),
  /** The rules that open jobs when a commit adds rows. They are deleted with their table. */
  automations: clustered(`primary key (table_id, kind, target), ${ofTable}`, {
    /** The table whose new rows open the jobs. */
    tableId: integer(),
    kind: text<AutomationKind>(),
    /** A column of the table or the id of a view; empty for work on the whole table. */
    target: text(),
    /** The principal of the jobs. */
    principal: text(),
    /** The latest version of the table when the latest of these jobs was opened. */
    seenVersion: bigint(),
    /** The highest id of any fragment up to that version. New rows have higher ones. */
    seenFragment: bigint(),
    /** The time at which the latest of these jobs was opened, or else that of the rule. */
    sinceMillis: bigint(),
  }),
  /** The versions of Functions, which never change. They are deleted with their namespace. */
  functions: table(`primary key (id), constraint functions_version unique (namespace, name, version), ${ofNamespace}`, {
    id: text(),
    namespace: text(),
    name: text(),
    version: integer(),
    definition: json<FunctionDefinition>(),
    /** The SHA-256 of the definition, which includes that of the content. */
    digest: text(),
    /** The source in Base64. */
    content: text(),
    principal: text(),
    createdAtMillis: bigint(),
    /** Columns may use the version, because its packages were installed once or it has none. */
    isReady: flag(),
    /** The latest job that installs the packages. The job may be deleted already. */
    jobId: optional(text()),
  }),
  /** The secrets of Functions. They are deleted with their namespace. */
  secrets: clustered(`primary key (namespace, name), ${ofNamespace}`, {
    namespace: text(),
    name: text(),
    /** The encrypted value with its authentication tag, in Base64. */
    ciphertext: text(),
    /** In Base64. */
    nonce: text(),
    keyId: text(),
    createdAtMillis: bigint(),
    updatedAtMillis: bigint(),
  }),
  /** The columns that Functions compute. They are deleted with their table or their Function. */
  functionBindings: table(
    `primary key (id), ${ofTable}, foreign key (function_id) references functions (id) on delete cascade`,
    {
      id: text(),
      tableId: integer(),
      functionId: text(),
      inputs: json<readonly FunctionInput[]>(),
      outputs: json<readonly FunctionResult[]>(),
      /** The arguments of the constructor of a class. */
      initialization: json<Readonly<Record<string, unknown>>>(),
      /** The principal that added the columns. */
      definer: text(),
    },
  ),
  /** The rows of each fragment that a Function has computed. */
  functionFragments: clustered(
    "primary key (binding_id, fragment_id), foreign key (binding_id) references function_bindings (id) on delete cascade",
    {
      bindingId: text(),
      fragmentId: bigint(),
      /** The digest of the input values, which the jobs compute. */
      signature: text(),
      /** The number of computed rows from the first one on. */
      rows: bigint(),
    },
  ),
  /** The rows that a Function could not compute. They are deleted with their job or their table. */
  functionErrors: clustered(`primary key (job_id, fragment_id, row_offset), ${ofJob}, ${ofTable}`, {
    jobId: text(),
    fragmentId: bigint(),
    /** The offset in the fragment; -1 if it is unknown. */
    rowOffset: bigint(),
    tableId: integer(),
    column: text(),
    functionName: text(),
    functionVersion: integer(),
    tableVersion: bigint(),
    errorType: text(),
    errorMessage: text(),
    createdAtMillis: bigint(),
  }),
  /** The numbers of rows of fragments that a Function could not compute, including those without a recorded error. */
  functionFailures: clustered(`primary key (job_id, fragment_id), ${ofJob}, ${ofTable}`, {
    jobId: text(),
    fragmentId: bigint(),
    tableId: integer(),
    column: text(),
    rows: bigint(),
  }),
  apiKeys: table("primary key (id), unique (hash)", {
    id: text(),
    principal: text(),
    hash: text(),
    createdAtMillis: bigint(),
    /** The id of the job whose attempt owns the key; undefined for all other keys. */
    job: optional(text()),
    attempt: optional(integer()),
    /** The principal that created the key of a job; undefined for all other keys. */
    creator: optional(text()),
  }),
  /** The tokens of development authentication. Each is valid until it expires or its key is deleted. */
  accessTokens: clustered("primary key (hash), foreign key (api_key) references api_keys (id) on delete cascade", {
    hash: text(),
    apiKey: text(),
    expiresAtMillis: bigint(),
  }),
  grants: clustered("primary key (principal, namespace)", { principal: text(), namespace: text(), role: text<Role>() }),
  /** Deferred work. Finished work has no row. */
  tasks: clustered("primary key (kind, subject)", {
    kind: text<TaskKind>(),
    /** The object of the work, in the format of the kind. */
    subject: text(),
    /** The number of started attempts. */
    attempts: withDefault(integer(), "0"),
    notBefore: bigint(),
    /** The claim of the worker; undefined without one. */
    claim: optional(text()),
    /** The expiry of the claim. */
    claimedUntil: withDefault(bigint(), "0"),
    /** The reason of the last failure. */
    reason: optional(text()),
    createdAtMillis: bigint(),
  }),
  /** The exclusive holders of names, with the expiry of their leases. */
  leases: clustered("primary key (name)", { name: text(), holder: text(), heldUntil: bigint() }),
  /** A single row with the time of the latest reading of the clock by any process. */
  clock: clustered("primary key (id)", { id: integer(), seenAtMillis: bigint() }),
  /** The times that no process saw, because the clock jumped or the catalog did not run. */
  clockJumps: table("primary key (to_millis)", { toMillis: bigint(), fromMillis: bigint() }),
};

/** Creates the tables with their indices, their first rows and their triggers. */
export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const statements = [
    ...Object.entries(tables).map(([name, each]) => createTable(name, each, dialect)),
    ...indices,
    sql`insert into namespaces (path, name, properties, created_at_millis)
      values ('', '', '{}', 0), (${sql.lit(droppedNamespace)}, '', '{}', 0)`,
    ...(dialect.name === "sqlite" ? refuseChangesInSqlite() : refuseChangesInPostgres()),
    // The counts of requests have the format of rate-limiter-flexible. They need not survive a crash.
    ...(dialect.isShared
      ? [
          sql`create unlogged table rate_limits (key text primary key, points integer not null default 0, expire bigint)`,
        ]
      : []),
  ];
  const database = db.withPlugin(new CamelCasePlugin());
  for (const statement of statements) await statement.execute(database);
}

function createTable(
  name: string,
  { columns, constraints, isClustered }: Table<Readonly<Record<string, Column<unknown>>>>,
  { text, countedKey, clustered }: Dialect,
): RawBuilder<unknown> {
  const types = {
    text,
    json: text,
    integer: sql`integer`,
    bigint: sql`bigint`,
    flag: sql`integer`,
    "counted key": countedKey,
  };
  const parts = Object.entries(columns).map(
    ([column, { type, constraint }]) => sql`${sql.id(column)} ${types[type]} ${sql.raw(constraint)}`,
  );
  const all = sql.join([...parts, sql.raw(constraints)]);
  return sql`create table ${sql.table(name)} (${all}) ${isClustered ? clustered : sql``}`;
}

const indices: Statements = [
  sql`create unique index namespaces_children on namespaces (parent, name)`,
  sql`create index tables_dropped on tables (dropped_at_millis) where dropped_at_millis is not null`,
  sql`create index tables_protected on tables (namespace) where is_protected = 1`,
  sql`create index views_of_source on views (source, table_id)`,
  sql`create index reserved_locations_of_table on reserved_locations (table_id) where table_id is not null`,
  sql`create index branches_unread_columns on branches (table_id)
    where name = 'main' and columns_version <> highest_version`,
  sql`create index table_versions_unfinished on table_versions (transaction_id) where state <> 'finished'`,
  ...indexesOfLists("audit_records"),
  ...indexesOfLists("jobs"),
  sql`create index jobs_open_of_principal on jobs (principal) where status in ('Queued', 'Running')`,
  sql`create index jobs_open_of_namespace on jobs (namespace) where status in ('Queued', 'Running')`,
  sql`create index functions_of_job on functions (job_id) where job_id is not null`,
  sql`create index function_bindings_of_table_id on function_bindings (table_id)`,
  sql`create index function_bindings_of_function_id on function_bindings (function_id)`,
  sql`create index function_errors_of_table on function_errors (table_id, job_id)`,
  sql`create index function_failures_of_table on function_failures (table_id, job_id)`,
  sql`create index access_tokens_of_key on access_tokens (api_key, expires_at_millis)`,
  sql`create index access_tokens_expired on access_tokens (expires_at_millis)`,
  sql`create index tasks_due on tasks (not_before)`,
];

/** The indices of lists. The planner uses them only if the lists spell their conditions exactly like this. */
function indexesOfLists(table: string): Statements {
  const on = sql.table(table);
  return [
    sql`create index ${sql.id(`${table}_of_one`)} on ${on} (objects, id) where objects not like '%],[%'`,
    sql`create index ${sql.id(`${table}_of_several`)} on ${on} (id) where objects like '%],[%'`,
    sql`create index ${sql.id(`${table}_open`)} on ${on} (id) where status in ('Queued', 'Running')`,
  ];
}

function refuseChangesInSqlite(): Statements {
  const refuse = (trigger: string, on: string, condition: string) =>
    sql`create trigger ${sql.id(trigger)} before ${sql.raw(on)} when ${sql.raw(condition)}
      begin select raise(abort, 'the audit is append-only'); end`;
  return [
    refuse("audit_records_unchanged", "update on audit_records", "true"),
    refuse("audit_outcomes_unchanged", "update on audit_outcomes", "true"),
    refuse(
      "audit_records_kept",
      "delete on audit_records",
      "not exists (select 1 from audit_retention where deleted_before > old.created_at_millis)",
    ),
    refuse(
      "audit_outcomes_kept",
      "delete on audit_outcomes",
      "exists (select 1 from audit_records where id = old.record_id)",
    ),
  ];
}

function refuseChangesInPostgres(): Statements {
  return [
    sql`create function keep_audit() returns trigger language plpgsql as $$
      begin
        if tg_op = 'DELETE' then
          if tg_table_name = 'audit_records' then
            if exists (select 1 from audit_retention where deleted_before > old.created_at_millis) then return old; end if;
          elsif not exists (select 1 from audit_records where id = old.record_id) then return old;
          end if;
        end if;
        raise exception 'the audit is append-only';
      end $$`,
    ...["audit_records", "audit_outcomes"].flatMap((table) => [
      sql`create trigger ${sql.id(`${table}_unchanged`)} before update or truncate on ${sql.table(table)}
        execute function keep_audit()`,
      sql`create trigger ${sql.id(`${table}_kept`)} before delete on ${sql.table(table)}
        for each row execute function keep_audit()`,
    ]),
  ];
}
