import { isDeepStrictEqual } from "node:util";
import { type Identifier, openStatuses, type TransactionStatus } from "@tiltyard/protocol";
import { type Kysely, type RawBuilder, type SqlBool, sql } from "kysely";
import { selectAuditRecords } from "./audit.ts";
import { type JobSummaryRecord, selectJobSummaries } from "./jobs.ts";
import { isWithin, toRecord } from "./path.ts";
import type { Schema } from "./schema.ts";
import type { Page, Session } from "./store.ts";
import { idAt, isOpen, objectSeparator, type TransactionRecord, toAuditRecord } from "./transactions.ts";

/** The filters of a list. An absent filter matches all transactions. */
export interface TransactionFilter {
  readonly within: Identifier;
  readonly table?: Identifier | undefined;
  readonly principal?: string | undefined;
  readonly statuses?: readonly TransactionStatus[] | undefined;
  readonly sinceMillis?: number | undefined;
  /** The exclusive end of the matching times of creation. */
  readonly untilMillis?: number | undefined;
}

export interface TransactionPage extends Page<string> {
  readonly ascending: boolean;
}

/** The maximum number of rows that one page scans without an index. It may be empty although more follow. */
const examinedMax = 10_000;
/** The maximum size of the objects and properties of the rows that one page reads. It reads at least one row. */
const pageBytesMax = 1024 * 1024;
/** The maximum difference between the time in an id and that of its write, perhaps on another clock. */
const idSlackMs = 15 * 60_000;

const several = sql.lit(`%${objectSeparator}%`);

/** The size of the long columns of a row. The databases know it without reading the columns. */
const bytes = sql<number>`octet_length(t.objects) + octet_length(t.properties)`.as("bytes");
const sources = {
  audit: (db: Kysely<Schema>) => selectAuditRecords(db).select(bytes),
  jobs: (db: Kysely<Schema>) => selectJobSummaries(db).select(bytes),
} as const;
type Source = keyof typeof sources;

interface Match {
  readonly source: Source;
  readonly id: string;
  readonly bytes: number;
}

/** Lists audit records and jobs without their parameters in the order of their ids, which is the order of their creation. */
export function listTransactions(session: Session, filter: TransactionFilter, page: TransactionPage) {
  return listIn(["audit", "jobs"], session, filter, page);
}

export async function listJobs(session: Session, filter: TransactionFilter, page: TransactionPage) {
  const { items, next } = await listIn(["jobs"], session, filter, page);
  return { items: items.filter((record) => "tableId" in record), next };
}

/** @returns The records, and the id that the next page follows; undefined after the last page. */
async function listIn(
  sourceNames: readonly Source[],
  session: Session,
  filter: TransactionFilter,
  page: TransactionPage,
): Promise<{ readonly items: readonly (TransactionRecord | JobSummaryRecord)[]; readonly next: string | undefined }> {
  const order = (a: string, b: string) => (a === b ? 0 : a < b === page.ascending ? -1 : 1);
  const parts = await Promise.all(
    conditionsOf(filter).flatMap((condition) =>
      sourceNames.map((source) => searchIn(session, source, condition, filter, page)),
    ),
  );

  // The part may have more records beyond its end.
  const [end] = parts.flatMap((part) => part.end ?? []).sort(order);
  const found = parts
    .flatMap((part) => part.matches)
    .filter(({ id }) => end === undefined || order(end, id) >= 0)
    .sort((a, b) => order(a.id, b.id));
  const matches = fitting(found.slice(0, page.limit));
  const next = found.length > matches.length ? matches.at(-1)?.id : end;
  const records = await Promise.all(sourceNames.map((source) => readIn(session, source, matches)));
  const items = records
    .flat()
    .filter((record) => stillMatches(record, filter))
    .sort((a, b) => order(a.id, b.id));
  return { items, next };
}

/** Returns the first rows within the maximum size, and at least one. */
function fitting(matches: readonly Match[]): readonly Match[] {
  let total = 0;
  for (const [index, { bytes }] of matches.entries()) {
    total += bytes;
    if (total > pageBytesMax && index > 0) return matches.slice(0, index);
  }
  return matches;
}

/** Returns the conditions of the parts of a list. Each has an index on its literals. */
function conditionsOf({ table, statuses }: TransactionFilter): readonly RawBuilder<SqlBool>[] {
  if (table !== undefined)
    return [
      sql`(t.objects not like ${several} and t.objects = ${JSON.stringify([table])})`,
      sql`t.objects like ${several}`,
    ];
  return statuses?.every((status) => openStatuses.includes(status)) ? [isOpen] : [sql`true`];
}

/** Returns the rows of one part and the id up to which the part was scanned; undefined after a complete scan. */
async function searchIn(
  { db, position }: Session,
  source: Source,
  condition: RawBuilder<SqlBool>,
  filter: TransactionFilter,
  { after, limit, ascending }: TransactionPage,
) {
  const { within, table, principal, statuses, sinceMillis = 0, untilMillis = Number.MAX_SAFE_INTEGER } = filter;
  const direction = ascending ? "asc" : "desc";
  const [earliest, latest] = [idAt(sinceMillis - idSlackMs), idAt(untilMillis + idSlackMs)];
  const lower = ascending && after !== undefined && after > earliest ? after : earliest;
  const upper = !ascending && after !== undefined && after < latest ? after : latest;
  // SQLite reads each row as a whole to compare it with the bound at which the scan ends.
  const hasLower = ascending || filter.sinceMillis !== undefined;
  const hasUpper = !ascending || filter.untilMillis !== undefined;
  const examined = sql<SqlBool>`${condition} ${hasLower ? sql`and t.id > ${lower}` : sql``}
    ${hasUpper ? sql`and t.id < ${upper}` : sql``}`;

  const rows = await db
    .selectFrom(sources[source](db).where(examined).orderBy("t.id", direction).limit(examinedMax).as("examined"))
    .select(["id", "bytes"])
    .where(isWithin("namespace", within))
    // SQLite reads all objects of a row before the columns that follow them.
    .$if(filter.sinceMillis !== undefined, (query) => query.where("createdAtMillis", ">=", sinceMillis))
    .$if(filter.untilMillis !== undefined, (query) => query.where("createdAtMillis", "<", untilMillis))
    .$if(table !== undefined, (query) => query.where(sql<SqlBool>`${position}(objects, ${JSON.stringify(table)}) > 0`))
    .$if(principal !== undefined, (query) => query.where("principal", "=", principal ?? ""))
    .$if(statuses !== undefined, (query) => query.where("status", "in", statuses ?? []))
    .orderBy("id", direction)
    .limit(limit + 1)
    .execute();
  const matches = rows.map(({ id, bytes }): Match => ({ source, id, bytes }));
  if (matches.length > limit) return { matches, end: matches.at(-1)?.id };

  const lastExamined = await db
    .selectFrom(sources[source](db).where(examined).orderBy("t.id", direction).as("examined"))
    .select("id")
    .offset(examinedMax - 1)
    .limit(1)
    .executeTakeFirst();
  return { matches, end: lastExamined?.id };
}

/** Reads the matching rows of a source, in any order. */
async function readIn({ db }: Session, source: Source, matches: readonly Match[]) {
  const ids = matches.filter((match) => match.source === source).map(({ id }) => id);
  if (ids.length === 0) return [];
  const rows = await sources[source](db)
    .where(sql<SqlBool>`t.id in (${sql.join(ids)})`)
    .execute();
  return rows.map(({ bytes: _, ...row }) => ("tableId" in row ? toRecord(row) : toAuditRecord(row)));
}

/** Reports whether a record still matches. The search may find a name in another text, and an old status. */
function stillMatches(record: TransactionRecord, { table, statuses }: TransactionFilter): boolean {
  if (statuses?.includes(record.status) === false) return false;
  return table === undefined || record.objects.some((object) => isDeepStrictEqual(object, table));
}
