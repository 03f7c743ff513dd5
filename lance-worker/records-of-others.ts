import { createHash } from "node:crypto";
import { readSchema } from "./arrow/arrow-schema.ts";
import type { OpenTable } from "./open-table.ts";
import type { RecordsOfOthers, RecordsOfOthersRequest } from "./wire.ts";

/** The column of Geneva's tables with the job of a row. Tables without it belong to no job. */
const ownerColumn = "job_id";

/** The number of the first row of each fragment, by its id. */
const rowsOfFragment = 2n ** 32n;

/** Reads the rows of a table that do not belong to a job. */
export async function readRecordsOfOthers(
  dataset: OpenTable,
  { job, columns: requested, fragments }: RecordsOfOthersRequest,
): Promise<RecordsOfOthers> {
  const { fields } = readSchema(await dataset.schema());
  const present = fields.map(({ name }) => name);
  const columns = requested?.filter((name) => present.includes(name)) ?? present;
  const query = dataset.table.query();
  if (fragments !== undefined) query.where(rangesOf(fragments));
  const rows: string[] = [];
  // A filter by the owner would trust an index on this column, which the job may have written itself.
  for await (const batch of query.select([...new Set([...columns, ...present.filter((name) => name === ownerColumn)])]))
    for (const row of batch) {
      const { [ownerColumn]: owner, ...rest } = row.toJSON() as Record<string, unknown>;
      if (owner === job) continue;
      const compared = columns.includes(ownerColumn) ? { ...rest, [ownerColumn]: owner } : rest;
      rows.push(createHash("sha256").update(textOf(compared)).digest("base64"));
    }
  // An equal number may have another type, and metadata determine the meaning of values.
  const types = textOf(columns.map((column) => fields.find(({ name }) => name === column)));
  const digest = createHash("sha256")
    .update([types, ...rows.sort()].join())
    .digest("base64");
  return { columns, digest };
}

/** Returns the condition of rows in some fragments. */
function rangesOf(fragments: readonly number[]): string {
  const ranges: { from: bigint; to: bigint }[] = [];
  for (const id of [...fragments].sort((one, other) => one - other)) {
    const from = BigInt(id) * rowsOfFragment;
    const last = ranges.at(-1);
    if (last?.to === from) last.to += rowsOfFragment;
    else ranges.push({ from, to: from + rowsOfFragment });
  }
  return ranges.map(({ from, to }) => `(_rowaddr >= ${from} AND _rowaddr < ${to})`).join(" OR ") || "false";
}

/** Returns a text that is equal only for equal rows. */
function textOf(row: object): string {
  return JSON.stringify(row, (_, value: unknown) =>
    typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? `number ${value}` : value,
  );
}
