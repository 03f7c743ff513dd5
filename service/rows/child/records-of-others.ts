import { createHash } from "node:crypto";
import { readSchema } from "../arrow/arrow-schema.ts";
import type { OpenTable } from "./open-table.ts";

/** The column of Geneva's tables with the job of a row. Tables without it belong to no job. */
const ownerColumn = "job_id";

export interface RecordsOfOthers {
  readonly columns: readonly string[];
  /** The digest of the rows, which does not depend on their order or their files. */
  readonly digest: string;
}

interface Request {
  readonly job: string;
  /** The columns to compare, without those that are missing; all columns if undefined. */
  readonly columns?: readonly string[];
}

/** Reads the rows of a table that do not belong to a job. */
export async function readRecordsOfOthers(
  dataset: OpenTable,
  { job, columns: asked }: Request,
): Promise<RecordsOfOthers> {
  const present = readSchema(await dataset.schema()).fields.map(({ name }) => name);
  const columns = asked?.filter((name) => present.includes(name)) ?? present;
  const query = dataset.table.query();
  if (present.includes(ownerColumn))
    query.where(`${ownerColumn} IS NULL OR ${ownerColumn} <> '${job.replaceAll("'", "''")}'`);
  const rows: string[] = [];
  for await (const batch of query.select([...columns]))
    for (const row of batch) rows.push(createHash("sha256").update(textOf(row)).digest("base64"));
  const digest = createHash("sha256").update(rows.sort().join()).digest("base64");
  return { columns, digest };
}

/** Returns a text that is equal only for equal rows. */
function textOf(row: object): string {
  return JSON.stringify(row, (_, value: unknown) =>
    typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? `number ${value}` : value,
  );
}
