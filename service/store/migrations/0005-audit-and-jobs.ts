import { type Kysely, sql } from "kysely";
import type { Dialect } from "../dialect.ts";

/** The operations whose transactions are jobs. */
const jobOperations = sql`('AlterTableBackfillColumns', 'RefreshMaterializedView')`;

/**
 * Splits the table of transactions into the audit, which the database keeps append-only, and the jobs, whose status
 * clients change.
 */
export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTables(db, dialect);
  await moveRows(db, dialect);
  for (const table of ["audit_records", "jobs"]) await createIndexes(db, table);
  if (!dialect.isShared) return await refuseChangesInSqlite(db);
  await refuseChangesInPostgres(db);
  await serveReleaseBefore(db);
}

async function createTables(db: Kysely<unknown>, { text, keptInKeyOrder }: Dialect): Promise<void> {
  const createOpened = (table: string) =>
    db.schema
      .createTable(table)
      .addColumn("id", text, (column) => column.primaryKey())
      .addColumn("namespace", text, (column) => column.notNull())
      .addColumn("operation", text, (column) => column.notNull())
      .addColumn("objects", text, (column) => column.notNull())
      .addColumn("principal", text, (column) => column.notNull())
      .addColumn("request_id", text, (column) => column.notNull())
      .addColumn("status", text, (column) => column.notNull())
      .addColumn("properties", text, (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .modifyEnd(keptInKeyOrder);
  await createOpened("audit_records").execute();
  await createOpened("jobs")
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("audit_outcomes")
    .addColumn("record_id", text, (column) => column.primaryKey())
    .addColumn("status", text, (column) => column.notNull())
    .addColumn("reason", text)
    .addColumn("recorded_at", "bigint", (column) => column.notNull())
    .modifyEnd(keptInKeyOrder)
    .execute();
  await db.schema
    .createTable("audit_retention")
    .addColumn("deleted_before", "bigint", (column) => column.primaryKey())
    .execute();
}

async function moveRows(db: Kysely<unknown>, { isShared }: Dialect): Promise<void> {
  // A replica of the previous release must not add a row after the copy.
  if (isShared) await sql`lock table transactions in access exclusive mode`.execute(db);
  const columns = sql`id, namespace, operation, objects, principal, request_id, properties, created_at`;
  const reason = isShared ? sql`properties::json ->> 'reason'` : sql`properties ->> 'reason'`;
  await sql`insert into jobs (${columns}, status, updated_at)
    select ${columns}, status, updated_at from transactions where operation in ${jobOperations}`.execute(db);
  await sql`insert into audit_records (${columns}, status)
    select ${columns}, case status when 'Succeeded' then 'Succeeded' else 'Running' end
    from transactions where operation not in ${jobOperations}`.execute(db);
  await sql`insert into audit_outcomes (record_id, status, reason, recorded_at)
    select id, status, ${reason}, updated_at
    from transactions where operation not in ${jobOperations} and status in ('Failed', 'Canceled')`.execute(db);
  await sql`drop table transactions`.execute(db);
}

/**
 * Creates the indices of lists. The planner uses them only if the lists spell their conditions exactly as these indices
 * do.
 */
async function createIndexes(db: Kysely<unknown>, table: string): Promise<void> {
  const [ofOne, ofSeveral, open] = [`${table}_of_one`, `${table}_of_several`, `${table}_open`].map((name) =>
    sql.id(name),
  );
  const on = sql.table(table);
  await sql`create index ${ofOne} on ${on} (objects, id) where objects not like '%],[%'`.execute(db);
  await sql`create index ${ofSeveral} on ${on} (id) where objects like '%],[%'`.execute(db);
  await sql`create index ${open} on ${on} (id) where status in ('Queued', 'Running')`.execute(db);
}

/**
 * Rejects changes of the audit. Only records older than `audit_retention` can be deleted, and outcomes only after their
 * records.
 */
async function refuseChangesInSqlite(db: Kysely<unknown>): Promise<void> {
  const refuse = (trigger: string, on: string, condition: string) =>
    sql`create trigger ${sql.id(trigger)} before ${sql.raw(on)} when ${sql.raw(condition)}
      begin select raise(abort, 'the audit is append-only'); end`.execute(db);
  await refuse("audit_records_unchanged", "update on audit_records", "true");
  await refuse("audit_outcomes_unchanged", "update on audit_outcomes", "true");
  await refuse(
    "audit_records_kept",
    "delete on audit_records",
    "not exists (select 1 from audit_retention where deleted_before > old.created_at)",
  );
  await refuse(
    "audit_outcomes_kept",
    "delete on audit_outcomes",
    "exists (select 1 from audit_records where id = old.record_id)",
  );
}

async function refuseChangesInPostgres(db: Kysely<unknown>): Promise<void> {
  await sql`create function keep_audit() returns trigger language plpgsql as $$
    begin
      if tg_op = 'DELETE' then
        if tg_table_name = 'audit_records' then
          if exists (select 1 from audit_retention where deleted_before > old.created_at) then return old; end if;
        elsif not exists (select 1 from audit_records where id = old.record_id) then return old;
        end if;
      end if;
      raise exception 'the audit is append-only';
    end $$`.execute(db);
  for (const table of ["audit_records", "audit_outcomes"]) {
    const [unchanged, kept] = [sql.id(`${table}_unchanged`), sql.id(`${table}_kept`)];
    await sql`create trigger ${unchanged} before update or truncate on ${sql.table(table)}
      execute function keep_audit()`.execute(db);
    await sql`create trigger ${kept} before delete on ${sql.table(table)}
      for each row execute function keep_audit()`.execute(db);
  }
}

/** Serves replicas of the previous release, which still read and write a single table. The next release drops this view. */
async function serveReleaseBefore(db: Kysely<unknown>): Promise<void> {
  const columns = sql`id, namespace, operation, objects, principal, request_id`;
  await sql`create view transactions as
    select ${columns}, coalesce(o.status, r.status) as status, properties, created_at,
      coalesce(o.recorded_at, r.created_at) as updated_at
    from audit_records r left join audit_outcomes o on o.record_id = r.id
    union all select ${columns}, status, properties, created_at, updated_at from jobs`.execute(db);
  await sql`create function write_transactions() returns trigger language plpgsql as $$
    begin
      if tg_op = 'INSERT' and new.status = 'Queued' then
        insert into jobs (${columns}, status, properties, created_at, updated_at)
        values (new.id, new.namespace, new.operation, new.objects, new.principal, new.request_id, new.status,
          new.properties, new.created_at, new.updated_at);
      elsif tg_op = 'INSERT' then
        insert into audit_records (${columns}, status, properties, created_at)
        values (new.id, new.namespace, new.operation, new.objects, new.principal, new.request_id, new.status,
          new.properties, new.created_at);
      else
        update jobs set status = new.status, properties = new.properties, updated_at = new.updated_at
        where id = new.id;
        if not found and new.status <> old.status then
          insert into audit_outcomes (record_id, status, reason, recorded_at)
          values (new.id, new.status, new.properties::json ->> 'reason', new.updated_at) on conflict do nothing;
        end if;
      end if;
      return new;
    end $$`.execute(db);
  await sql`create trigger transactions_written instead of insert or update on transactions
    for each row execute function write_transactions()`.execute(db);
}
