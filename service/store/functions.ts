import type { Identifier } from "@tiltyard/protocol";
import type { Kysely } from "kysely";
import { droppedNamespace, follows, fromPath, nameOf, toPath, toRecord } from "./path.ts";
import { columnsWithout, type RecordOf, type Schema } from "./schema.ts";
import type { Page, Session } from "./store.ts";
import { toStoredText } from "./transactions.ts";

/** A version of a Function without its source. */
export interface FunctionRecord extends Omit<RecordOf<"functions">, "namespace" | "content"> {
  readonly namespace: Identifier;
}

type Filter = Partial<Pick<RecordOf<"functions">, "id" | "namespace" | "name" | "version" | "digest" | "jobId">>;

function selectFunctions(db: Kysely<Schema>, filter: Filter) {
  return db
    .selectFrom("functions")
    .select(columnsWithout("functions", "content"))
    .where((eb) => eb.and(filter));
}

/** Inserts a version. Its namespace must exist. */
export async function insertFunction({ db }: Session, record: FunctionRecord & { content: string }): Promise<void> {
  await db
    .insertInto("functions")
    .values({ ...record, namespace: toPath(record.namespace) })
    .execute();
}

/** Returns the number of the latest version of a name; 0 without versions. */
export async function latestVersionOf({ db }: Session, function_: Identifier): Promise<number> {
  const row = await db
    .selectFrom("functions")
    .select("version")
    .where((eb) => eb.and(nameOf(function_)))
    .orderBy("version", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.version ?? 0;
}

export function findFunction(session: Session, function_: Identifier, version: number) {
  return findFunctionBy(session, { ...nameOf(function_), version });
}

/** Finds a version by its id, its registration, or the job that installs its packages, unless a later job does. */
export async function findFunctionBy({ db }: Session, filter: Filter): Promise<FunctionRecord | undefined> {
  const row = await selectFunctions(db, filter).executeTakeFirst();
  return row && toRecord(row);
}

/** Records the job that installs the packages of a version. */
export async function setJob({ db }: Session, id: string, jobId: string): Promise<void> {
  await db.updateTable("functions").set({ jobId }).where("id", "=", id).execute();
}

/** Records that the packages of the version of a job were installed. */
export async function setReady({ db }: Session, jobId: string): Promise<void> {
  await db.updateTable("functions").set({ isReady: true }).where("jobId", "=", jobId).execute();
}

/** Returns the source of a Function in Base64. */
export async function readContent({ db }: Session, id: string): Promise<string> {
  return (await db.selectFrom("functions").select("content").where("id", "=", id).executeTakeFirstOrThrow()).content;
}

/** Deletes a version with the bindings to it. */
export async function deleteFunction({ db }: Session, id: string): Promise<void> {
  await db.deleteFrom("functions").where("id", "=", id).execute();
}

/** Lists the versions in a namespace that follow a key, by name and version. */
export async function listFunctions(
  { db }: Session,
  namespace: Identifier,
  { after, limit }: Page<Pick<FunctionRecord, "name" | "version">>,
): Promise<FunctionRecord[]> {
  const rows = await selectFunctions(db, { namespace: toPath(namespace) })
    .where(follows(["name", "version"], after))
    .orderBy("name")
    .orderBy("version")
    .limit(limit)
    .execute();
  return rows.map(toRecord);
}

/** The columns of a table that a Function computes together, with the name and the version of the Function. */
export interface BindingRecord extends RecordOf<"functionBindings"> {
  readonly functionName: string;
  readonly functionVersion: number;
}

function selectBindings(db: Kysely<Schema>) {
  return db
    .selectFrom("functionBindings as b")
    .innerJoin("functions as f", "f.id", "b.functionId")
    .selectAll("b")
    .select(["f.name as functionName", "f.version as functionVersion"]);
}

export async function insertBinding({ db }: Session, binding: RecordOf<"functionBindings">): Promise<void> {
  await db.insertInto("functionBindings").values(binding).execute();
}

export async function listBindings({ db }: Session, tableId: number): Promise<BindingRecord[]> {
  return selectBindings(db).where("b.tableId", "=", tableId).orderBy("b.id").execute();
}

/** Finds a binding with the definition of its Function. */
export async function findBinding({ db }: Session, id: string) {
  return selectBindings(db).select("f.definition").where("b.id", "=", id).executeTakeFirst();
}

/** Lists the bindings to a Function on tables that have a name, with the names of the tables. */
export async function listUsesOf({ db }: Session, functionId: string) {
  const rows = await db
    .selectFrom("functionBindings as b")
    .innerJoin("tables as t", "t.id", "b.tableId")
    .select(["b.id", "b.outputs", "t.namespace", "t.name"])
    .where("b.functionId", "=", functionId)
    .where("t.namespace", "!=", droppedNamespace)
    .execute();
  return rows.map(({ namespace, name, ...use }) => ({ ...use, table: [...fromPath(namespace), name] }));
}

export async function setOutputs({ db }: Session, { id, outputs }: Pick<BindingRecord, "id" | "outputs">) {
  await db.updateTable("functionBindings").set({ outputs }).where("id", "=", id).execute();
}

export async function deleteBinding({ db }: Session, id: string): Promise<void> {
  await db.deleteFrom("functionBindings").where("id", "=", id).execute();
}

type Fragment = RecordOf<"functionFragments">;

export async function listFragments({ db }: Session, bindingId: string): Promise<Fragment[]> {
  const fragments = db.selectFrom("functionFragments").selectAll().where("bindingId", "=", bindingId);
  return fragments.orderBy("fragmentId").execute();
}

/** Replaces the records of some fragments, and deletes those of others. */
export async function putFragments(
  { db }: Session,
  bindingId: string,
  fragments: readonly Omit<Fragment, "bindingId">[],
  removed: readonly number[],
): Promise<void> {
  const changed = [...removed, ...fragments.map(({ fragmentId }) => fragmentId)];
  if (changed.length === 0) return;
  await db
    .deleteFrom("functionFragments")
    .where("bindingId", "=", bindingId)
    .where("fragmentId", "in", changed)
    .execute();
  if (fragments.length === 0) return;
  const rows = fragments.map((each) => ({ ...each, bindingId }));
  await db.insertInto("functionFragments").values(rows).execute();
}

export type RowErrorRecord = RecordOf<"functionErrors">;

/** Inserts the errors of rows of one job up to a maximum number for the job. A row has one error in a job. */
export async function insertErrors({ db }: Session, errors: readonly RowErrorRecord[], jobId: string, most: number) {
  const { count } = await db
    .selectFrom("functionErrors")
    .select(({ fn }) => fn.countAll().as("count"))
    .where("jobId", "=", jobId)
    .executeTakeFirstOrThrow();
  const rows = errors.slice(0, Math.max(0, most - Number(count)));
  if (rows.length === 0) return;
  const stored = rows.map((row) => ({ ...row, errorMessage: toStoredText(row.errorMessage) }));
  await db
    .insertInto("functionErrors")
    .values(stored)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

interface ErrorFilter extends Pick<RowErrorRecord, "tableId"> {
  readonly jobId?: string | undefined;
  readonly column?: string | undefined;
  readonly limit: number;
}

/** Replaces the numbers of failed rows of fragments in one job. */
export async function putFailures({ db }: Session, failures: readonly RecordOf<"functionFailures">[]): Promise<void> {
  if (failures.length === 0) return;
  await db
    .insertInto("functionFailures")
    .values(failures)
    .onConflict((conflict) =>
      conflict.columns(["jobId", "fragmentId"]).doUpdateSet(({ ref }) => ({ rows: ref("excluded.rows") })),
    )
    .execute();
}

/** Counts the rows that the Function of a job could not compute. */
export async function countFailures({ db }: Session, jobId: string): Promise<number> {
  const { rows } = await db
    .selectFrom("functionFailures")
    .select(({ fn }) => fn.sum("rows").as("rows"))
    .where("jobId", "=", jobId)
    .executeTakeFirstOrThrow();
  return Number(rows ?? 0);
}

/** Lists the fragments with more failed rows than recorded errors, those of the newest job first. */
export async function listFailures({ db }: Session, { tableId, jobId, column, limit }: ErrorFilter) {
  const counted = db.selectFrom("functionFailures as f").select(({ selectFrom, ref }) => [
    ...(["f.jobId", "f.fragmentId", "f.tableId", "f.column", "f.rows"] as const),
    selectFrom("functionErrors as e")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("e.jobId", "=", ref("f.jobId"))
      .where("e.fragmentId", "=", ref("f.fragmentId"))
      .as("recorded"),
  ]);
  const rows = await db
    .selectFrom(counted.as("f"))
    .select(["f.jobId", "f.fragmentId", "f.rows", "f.recorded"])
    .whereRef("f.rows", ">", "f.recorded")
    .where("f.tableId", "=", tableId)
    .$if(jobId !== undefined, (query) => query.where("f.jobId", "=", jobId ?? ""))
    .$if(column !== undefined, (query) => query.where("f.column", "=", column ?? ""))
    .orderBy("f.jobId", "desc")
    .orderBy("f.fragmentId")
    .limit(limit)
    .execute();
  return rows.map(({ recorded, ...row }) => ({ ...row, recorded: Number(recorded) }));
}

/** Lists the errors of rows of a table, those of the newest job first. */
export async function listErrors({ db }: Session, { tableId, jobId, column, limit }: ErrorFilter) {
  return db
    .selectFrom("functionErrors")
    .selectAll()
    .where("tableId", "=", tableId)
    .$if(jobId !== undefined, (query) => query.where("jobId", "=", jobId ?? ""))
    .$if(column !== undefined, (query) => query.where("column", "=", column ?? ""))
    .orderBy("jobId", "desc")
    .orderBy("fragmentId")
    .orderBy("rowOffset")
    .limit(limit)
    .execute();
}
