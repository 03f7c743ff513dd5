import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Dialect } from "../dialect.ts";
import { droppedNamespace } from "../path.ts";

type Statements = readonly RawBuilder<unknown>[];

/** Creates the schema of the first release. `schema.ts` describes its tables and columns. */
export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const parts = [tables, versions, audit, jobs, functions, principals, coordination];
  for (const statement of parts.flatMap((part) => part(dialect))) await statement.execute(db);
}

/** Namespaces, including the root and the hidden one of dropped tables, and tables. */
function tables({ text, countedKey, clustered }: Dialect): Statements {
  return [
    sql`create table namespaces (
      path ${text} primary key,
      parent ${text} references namespaces (path),
      name ${text} not null,
      properties ${text} not null,
      created_at_millis bigint not null
    )`,
    sql`create unique index namespaces_children on namespaces (parent, name)`,
    sql`insert into namespaces (path, name, properties, created_at_millis)
      values ('', '', '{}', 0), (${sql.lit(droppedNamespace)}, '', '{}', 0)`,
    sql`create table tables (
      id ${countedKey},
      namespace ${text} not null references namespaces (path),
      name ${text} not null,
      location ${text} not null unique,
      properties ${text} not null,
      created_at_millis bigint not null,
      dropped_from ${text},
      dropped_at_millis bigint,
      is_automated integer not null default 0,
      is_view integer not null default 0,
      is_protected integer not null default 0,
      constraint tables_name unique (namespace, name)
    )`,
    sql`create index tables_dropped on tables (dropped_at_millis) where dropped_at_millis is not null`,
    sql`create index tables_protected on tables (namespace) where is_protected = 1`,
    sql`create table views (
      table_id integer primary key references tables (id) on delete cascade,
      source ${text},
      definer ${text} not null,
      definition ${text} not null,
      schema_digest ${text}
    )`,
    sql`create index views_of_source on views (source, table_id)`,
    sql`create table table_columns (
      table_id integer primary key references tables (id) on delete cascade,
      names ${text} not null
    )`,
    sql`create table reserved_locations (
      location ${text} primary key,
      identifier ${text} not null,
      table_id integer
    ) ${clustered}`,
    sql`create index reserved_locations_of_table on reserved_locations (table_id) where table_id is not null`,
  ];
}

function versions({ text, clustered }: Dialect): Statements {
  return [
    sql`create table branches (
      table_id integer not null references tables (id) on delete cascade,
      name ${text} not null,
      generation integer not null,
      first_version bigint not null,
      highest_version bigint not null,
      left_over_version bigint not null,
      columns_version bigint not null default -1,
      withdrawals integer not null default 0,
      primary key (table_id, name)
    ) ${clustered}`,
    sql`create index branches_unread_columns on branches (table_id)
      where name = 'main' and columns_version <> highest_version`,
    sql`create table table_versions (
      table_id integer not null,
      branch ${text} not null,
      generation integer not null,
      version bigint not null,
      state ${text} not null,
      manifest_name ${text} not null,
      committed_name ${text} not null,
      identity ${text} not null,
      manifest_size bigint,
      e_tag ${text},
      metadata ${text},
      lance_operation ${text},
      row_count bigint,
      timestamp_millis bigint not null,
      transaction_id ${text} not null,
      primary key (table_id, branch, generation, version),
      foreign key (table_id, branch) references branches (table_id, name) on delete cascade
    ) ${clustered}`,
    sql`create index table_versions_unfinished on table_versions (transaction_id) where state <> 'finished'`,
  ];
}

/** The audit, which the database keeps append-only: only records older than `audit_retention` can be deleted. */
function audit(dialect: Dialect): Statements {
  const { text, clustered } = dialect;
  return [
    sql`create table audit_records (${openedColumns(dialect)}) ${clustered}`,
    ...indexesOfLists("audit_records"),
    sql`create table audit_outcomes (
      record_id ${text} primary key,
      status ${text} not null,
      reason ${text},
      recorded_at_millis bigint not null
    ) ${clustered}`,
    sql`create table audit_retention (deleted_before bigint primary key)`,
    ...(dialect.name === "sqlite" ? refuseChangesInSqlite() : refuseChangesInPostgres()),
  ];
}

function jobs(dialect: Dialect): Statements {
  const { text, clustered } = dialect;
  return [
    sql`create table jobs (
      ${openedColumns(dialect)},
      updated_at_millis bigint not null,
      api_key ${text},
      table_id integer,
      "column" ${text},
      parameters ${text} not null,
      author ${text},
      priority ${text} not null default 'normal',
      attempt integer not null default 0,
      interruptions integer not null default 0,
      paused_at_millis bigint,
      claim ${text},
      reason ${text},
      started_at_millis bigint,
      heartbeat_at_millis bigint,
      progressed_at_millis bigint,
      ended_at_millis bigint,
      progress ${text} not null default '{}',
      result ${text} not null default '{}',
      platform ${text} not null default '{}'
    ) ${clustered}`,
    ...indexesOfLists("jobs"),
    sql`create index jobs_open_of_principal on jobs (principal) where status in ('Queued', 'Running')`,
    sql`create index jobs_open_of_namespace on jobs (namespace) where status in ('Queued', 'Running')`,
    sql`create table job_attempts (
      job_id ${text} not null references jobs (id) on delete cascade,
      number integer not null,
      claimed_at_millis bigint not null,
      started_at_millis bigint,
      ended_at_millis bigint,
      reason ${text},
      log_tail ${text} not null,
      platform ${text} not null,
      samples ${text} not null,
      primary key (job_id, number)
    ) ${clustered}`,
    sql`create table automations (
      table_id integer not null references tables (id) on delete cascade,
      kind ${text} not null,
      target ${text} not null,
      principal ${text} not null,
      seen_version bigint not null,
      seen_fragment bigint not null,
      since_millis bigint not null,
      primary key (table_id, kind, target)
    ) ${clustered}`,
  ];
}

function functions({ text, clustered }: Dialect): Statements {
  return [
    sql`create table functions (
      id ${text} primary key,
      namespace ${text} not null references namespaces (path) on delete cascade,
      name ${text} not null,
      version integer not null,
      definition ${text} not null,
      digest ${text} not null,
      content ${text} not null,
      principal ${text} not null,
      created_at_millis bigint not null,
      is_ready integer not null,
      job_id ${text},
      constraint functions_version unique (namespace, name, version)
    )`,
    sql`create index functions_of_job on functions (job_id) where job_id is not null`,
    sql`create table secrets (
      namespace ${text} not null references namespaces (path) on delete cascade,
      name ${text} not null,
      ciphertext ${text} not null,
      nonce ${text} not null,
      key_id ${text} not null,
      created_at_millis bigint not null,
      updated_at_millis bigint not null,
      primary key (namespace, name)
    ) ${clustered}`,
    sql`create table function_bindings (
      id ${text} primary key,
      table_id integer not null references tables (id) on delete cascade,
      function_id ${text} not null references functions (id) on delete cascade,
      inputs ${text} not null,
      outputs ${text} not null,
      initialization ${text} not null
    )`,
    sql`create index function_bindings_of_table_id on function_bindings (table_id)`,
    sql`create index function_bindings_of_function_id on function_bindings (function_id)`,
    sql`create table function_fragments (
      binding_id ${text} not null references function_bindings (id) on delete cascade,
      fragment_id bigint not null,
      signature ${text} not null,
      rows bigint not null,
      primary key (binding_id, fragment_id)
    ) ${clustered}`,
    sql`create table function_errors (
      job_id ${text} not null references jobs (id) on delete cascade,
      fragment_id bigint not null,
      row_offset bigint not null,
      table_id integer not null references tables (id) on delete cascade,
      "column" ${text} not null,
      function_name ${text} not null,
      function_version integer not null,
      table_version bigint not null,
      error_type ${text} not null,
      error_message ${text} not null,
      created_at_millis bigint not null,
      primary key (job_id, fragment_id, row_offset)
    ) ${clustered}`,
    sql`create index function_errors_of_table on function_errors (table_id, job_id)`,
    sql`create table function_failures (
      job_id ${text} not null references jobs (id) on delete cascade,
      fragment_id bigint not null,
      table_id integer not null references tables (id) on delete cascade,
      "column" ${text} not null,
      rows bigint not null,
      primary key (job_id, fragment_id)
    ) ${clustered}`,
    sql`create index function_failures_of_table on function_failures (table_id, job_id)`,
  ];
}

function principals({ text, clustered }: Dialect): Statements {
  return [
    sql`create table api_keys (
      id ${text} primary key,
      principal ${text} not null,
      hash ${text} not null unique,
      created_at_millis bigint not null,
      job ${text},
      attempt integer,
      creator ${text}
    )`,
    sql`create table access_tokens (
      hash ${text} primary key,
      api_key ${text} not null references api_keys (id) on delete cascade,
      expires_at_millis bigint not null
    ) ${clustered}`,
    sql`create index access_tokens_of_key on access_tokens (api_key, expires_at_millis)`,
    sql`create index access_tokens_expired on access_tokens (expires_at_millis)`,
    sql`create table grants (
      principal ${text} not null,
      namespace ${text} not null,
      role ${text} not null,
      primary key (principal, namespace)
    ) ${clustered}`,
  ];
}

/** The tables with which processes coordinate. */
function coordination({ text, clustered, isShared }: Dialect): Statements {
  return [
    sql`create table tasks (
      kind ${text} not null,
      subject ${text} not null,
      attempts integer not null default 0,
      not_before bigint not null,
      claim ${text},
      claimed_until bigint not null default 0,
      reason ${text},
      created_at_millis bigint not null,
      primary key (kind, subject)
    ) ${clustered}`,
    sql`create index tasks_due on tasks (not_before)`,
    sql`create table leases (
      name ${text} primary key,
      holder ${text} not null,
      held_until bigint not null
    ) ${clustered}`,
    sql`create table clock (id integer primary key, seen_at_millis bigint not null) ${clustered}`,
    sql`create table clock_jumps (to_millis bigint primary key, from_millis bigint not null)`,
    // The counts of requests have the format of rate-limiter-flexible. They need not survive a crash.
    ...(isShared
      ? [
          sql`create unlogged table rate_limits (key text primary key, points integer not null default 0, expire bigint)`,
        ]
      : []),
  ];
}

/** The columns that audit records and jobs share. */
function openedColumns({ text }: Dialect): RawBuilder<unknown> {
  return sql`
      id ${text} primary key,
      namespace ${text} not null,
      operation ${text} not null,
      objects ${text} not null,
      principal ${text} not null,
      request_id ${text} not null,
      status ${text} not null,
      properties ${text} not null,
      created_at_millis bigint not null`;
}

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
