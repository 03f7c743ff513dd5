import { isDeepStrictEqual } from "node:util";
import { type Identifier, openStatuses, type TransactionStatus, transactionStatuses } from "@tiltyard/protocol";
import { type Kysely, type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import { selectAuditRecords } from "./audit.ts";
import { type JobRecord, selectJobs, toJobRecord } from "./jobs.ts";
import { isWithin, type Subtree, subtree } from "./path.ts";
import type { Schema } from "./schema.ts";
import { statement } from "./statement.ts";
import type { Session } from "./store.ts";
import { afterEveryId, idAt } from "./transaction-ids.ts";
import { objectSeparator, type TransactionRecord, toAuditRecord } from "./transactions.ts";

/** The filters of a list. An absent filter matches all transactions. */
export interface TransactionFilter {
  /** The namespace whose transactions match, with everything below it. */
  readonly within: Identifier;
  readonly table?: Identifier | undefined;
  readonly principal?: string | undefined;
  readonly statuses?: readonly TransactionStatus[] | undefined;
  readonly sinceMillis?: number | undefined;
  /** The exclusive end of the matching times of creation. */
  readonly untilMillis?: number | undefined;
}

export interface TransactionPage {
  /** The id that the page follows; the beginning when undefined. */
  readonly after: string | undefined;
  readonly limit: number;
  readonly ascending: boolean;
}

export interface FoundTransactions<Found extends TransactionRecord = TransactionRecord> {
  readonly records: readonly Found[];
  /** The id that the next page follows; undefined after the last page. */
  readonly next: string | undefined;
}

/**
 * The maximum number of rows that one page scans. Filters without an index would otherwise scan the whole table. A page
 * of such a list may be empty although more pages follow.
 */
const examinedMax = 10_000;
/**
 * The maximum difference between the time in an id and the write of its transaction. The write follows the creation of
 * the id, perhaps on another clock.
 */
const idSlackMs = 15 * 60_000;
const unfiltered = "";

interface Parameters extends Subtree {
  readonly lower: string;
  readonly upper: string;
  readonly examined: number;
  readonly limit: number;
  readonly only: string;
  readonly pattern: string;
  readonly principal: string;
  readonly status0: string;
  readonly status1: string;
  readonly status2: string;
  readonly status3: string;
  readonly status4: string;
  readonly since: number;
  readonly until: number;
}

const several = sql.lit(`%${objectSeparator}%`);

/** The conditions on audit records and jobs that have an index (migration 0005). */
const conditions = {
  all: () => sql`1 = 1`,
  ofOne: (p) => sql`t.objects not like ${several} and t.objects = ${p.only}`,
  ofSeveral: () => sql`t.objects like ${several}`,
  open: () => sql`t.status in ('Queued', 'Running')`,
} as const satisfies Record<string, (p: Parameters) => RawBuilder<unknown>>;
type Condition = keyof typeof conditions;

const tables = {
  audit: (db: Kysely<Schema>, where: RawBuilder<SqlBool>, direction: "asc" | "desc", limit: number) =>
    selectAuditRecords(db).where(where).orderBy("t.id", direction).limit(limit).as("examined"),
  jobs: (db: Kysely<Schema>, where: RawBuilder<SqlBool>, direction: "asc" | "desc", limit: number) =>
    selectJobs(db).where(where).orderBy("t.id", direction).limit(limit).as("examined"),
} as const;
type Table = keyof typeof tables;

function statementsOf(table: Table, condition: Condition, ascending: boolean) {
  const direction = ascending ? "asc" : "desc";
  const examined = (db: Kysely<Schema>, p: Parameters) => {
    const where = sql<SqlBool>`${conditions[condition](p)} and t.id > ${p.lower} and t.id < ${p.upper}`;
    return tables[table](db, where, direction, p.examined);
  };
  const search = statement((db, p: Parameters) =>
    db
      .selectFrom(examined(db, p))
      .selectAll()
      .where(isWithin("namespace", p))
      .where(sql<SqlBool>`objects like ${p.pattern} escape '!'`)
      .where(sql<SqlBool>`(${p.principal} = ${sql.lit(unfiltered)} or principal = ${p.principal})`)
      .where("status", "in", [p.status0, p.status1, p.status2, p.status3, p.status4])
      .where("created_at", ">=", p.since)
      .where("created_at", "<", p.until)
      .orderBy("id", direction)
      .limit(p.limit),
  );
  const findLastExamined = statement((db, p: Parameters) =>
    db
      .selectFrom(examined(db, p))
      .select("id")
      .orderBy("id", direction)
      .limit(1)
      .offset(sql<number>`${p.examined} - 1`),
  );
  return { search, findLastExamined };
}

type Statements = ReturnType<typeof statementsOf>;
const statements = new Map<string, Statements>();

/** Builds statements at their first use: most combinations are never requested. */
function statementsFor(table: Table, condition: Condition, ascending: boolean): Statements {
  const key = `${table} ${condition} ${ascending}`;
  const made = statements.get(key) ?? statementsOf(table, condition, ascending);
  statements.set(key, made);
  return made;
}

/** Lists audit records and jobs in the order of their ids, which is the order of their creation. */
export async function listTransactions(
  session: Session,
  filter: TransactionFilter,
  page: TransactionPage,
): Promise<FoundTransactions> {
  return listIn(["audit", "jobs"], session, filter, page);
}

/** Lists jobs like `listTransactions`. */
export async function listJobs(
  session: Session,
  filter: TransactionFilter,
  page: TransactionPage,
): Promise<FoundTransactions<JobRecord>> {
  const { records, next } = await listIn(["jobs"], session, filter, page);
  return { records: records.filter((record) => "parameters" in record), next };
}

async function listIn(
  tableNames: readonly Table[],
  session: Session,
  filter: TransactionFilter,
  page: TransactionPage,
): Promise<FoundTransactions<TransactionRecord | JobRecord>> {
  const parameters = parametersOf(filter, page);
  const isBefore = (a: string, b: string) => (page.ascending ? a < b : a > b);
  const parts = await Promise.all(
    conditionsOf(filter).flatMap((condition) =>
      tableNames.map((table) => searchIn(session, statementsFor(table, condition, page.ascending), parameters)),
    ),
  );

  // The part may have more records beyond its end.
  const end = parts
    .flatMap((part) => part.end ?? [])
    .reduce<string | undefined>(
      (nearest, each) => (nearest === undefined || isBefore(each, nearest) ? each : nearest),
      undefined,
    );
  const found = parts
    .flatMap((part) => part.records)
    .filter(({ id }) => end === undefined || !isBefore(end, id))
    .sort((a, b) => (isBefore(a.id, b.id) ? -1 : 1));
  const records = found.slice(0, page.limit);
  const next = found.length > records.length ? records.at(-1)?.id : end;
  return { records: records.filter((record) => changes(record, filter.table)), next };
}

function conditionsOf({ table, statuses }: TransactionFilter): readonly Condition[] {
  if (table !== undefined) return ["ofOne", "ofSeveral"];
  return statuses?.every((status) => openStatuses.includes(status)) ? ["open"] : ["all"];
}

/** Returns the transactions of one part and the id up to which the part was scanned; undefined after a complete scan. */
async function searchIn(session: Session, { search, findLastExamined }: Statements, parameters: Parameters) {
  const records = (await session.all(search, parameters)).map((row) =>
    isJob(row) ? toJobRecord(row) : toAuditRecord(row),
  );
  if (records.length === parameters.limit) return { records, end: records.at(-1)?.id };
  return { records, end: (await session.first(findLastExamined, parameters))?.id };
}

function isJob(row: object): row is Selectable<Schema["jobs"]> {
  return "parameters" in row;
}

function parametersOf(filter: TransactionFilter, { after, limit, ascending }: TransactionPage): Parameters {
  const { table, sinceMillis = 0, untilMillis = Number.MAX_SAFE_INTEGER } = filter;
  const { statuses = transactionStatuses } = filter;
  const status = (index: number) => statuses[index] ?? statuses[0] ?? unfiltered;
  const [earliest, latest] = [idAt(sinceMillis - idSlackMs), idAt(untilMillis + idSlackMs)];
  const max = (a: string, b: string) => (a > b ? a : b);
  const min = (a: string, b: string) => (a < b ? a : b);
  return {
    ...subtree(filter.within),
    lower: ascending ? max(after ?? "", earliest) : earliest,
    upper: ascending ? latest : min(after ?? afterEveryId, latest),
    examined: examinedMax,
    limit: limit + 1,
    only: JSON.stringify([table]),
    pattern: table === undefined ? "%" : `%${JSON.stringify(table).replaceAll(/[%_!]/g, "!$&")}%`,
    principal: filter.principal ?? unfiltered,
    status0: status(0),
    status1: status(1),
    status2: status(2),
    status3: status(3),
    status4: status(4),
    since: sinceMillis,
    until: untilMillis,
  };
}

/** Reports whether a record changes a table. The text of its objects can contain that of the table by chance. */
function changes(record: TransactionRecord, table: Identifier | undefined): boolean {
  if (table === undefined) return true;
  return record.objects.some((object) => isDeepStrictEqual(object, table));
}
