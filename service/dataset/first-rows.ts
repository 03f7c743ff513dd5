import { type managementContracts, type ResponseOf, type ShownValue, shown } from "@tiltyard/protocol";
import { readSchema } from "./arrow-schema.ts";
import type { OpenDataset } from "./datasets.ts";
import { rawQueryOf } from "./library.ts";
import { readEach, type ShownColumn, shownColumn } from "./shown-column.ts";

type FirstRows = ResponseOf<typeof managementContracts.listTableRows>;

/**
 * Reads the first rows of a table as people look at them. The library itself cuts long values and answers them a row at
 * a time, so that what this process holds of them is bounded.
 */
export async function readFirstRows(dataset: OpenDataset, rowsMax: number): Promise<FirstRows> {
  const { fields } = readSchema(await dataset.runRaw((table) => table.schema()));
  const names = fields.slice(0, shown.columns).map(({ name }) => name);
  const columns = await Promise.all(
    fields.slice(0, shown.columns).map(async (field) => {
      const column = shownColumn(field);
      return column !== undefined && (await isPlanned(dataset, column)) ? column : undefined;
    }),
  );
  return {
    version: dataset.version,
    columns: names.map((name, index) => ({ name, is_shown: columns[index] !== undefined })),
    columns_in_all: fields.length,
    rows: await readRows(dataset, columns, rowsMax),
  };
}

/** Whether the library can compute what a column is shown by. Nothing is read for that. */
async function isPlanned(dataset: OpenDataset, column: ShownColumn): Promise<boolean> {
  try {
    await dataset.run(async (table) => {
      const query = await rawQueryOf(table.query().select(selectionOf(column.expressions)));
      await query.outputSchema();
    });
    return true;
  } catch {
    return false;
  }
}

async function readRows(
  dataset: OpenDataset,
  columns: readonly (ShownColumn | undefined)[],
  rowsMax: number,
): Promise<FirstRows["rows"]> {
  const { tableFromIPC } = await import("apache-arrow");
  const expressions = columns.flatMap((column) => column?.expressions ?? []);
  if (expressions.length === 0) return [];
  const batches = await dataset.run(async (table) => {
    const query = await rawQueryOf(table.query().select(selectionOf(expressions)).limit(rowsMax));
    return query.execute(1);
  });
  const rows: FirstRows["rows"] = [];
  let bytesLeft: number = shown.answerBytes;
  const next = () => dataset.run(() => batches.next());
  for (let file = await next(); file !== null && bytesLeft > 0; file = await next())
    for (const row of tableFromIPC(file)) {
      const values = readEach(columns, Object.values(row.toJSON()));
      rows.push(
        values.map((value) => {
          const fitting = fitted(value, bytesLeft);
          bytesLeft -= sizeOf(fitting);
          return fitting;
        }),
      );
    }
  return rows;
}

/** A value without its image when that does not fit any more. */
function fitted(value: ShownValue | null, bytesLeft: number): ShownValue | null {
  if (value?.image === undefined || value.image.base64.length <= bytesLeft) return value;
  const { image, ...rest } = value;
  return rest;
}

function sizeOf(value: ShownValue | null): number {
  return Buffer.byteLength(value?.text ?? "") + (value?.image?.base64.length ?? 0);
}

function selectionOf(expressions: readonly string[]): Map<string, string> {
  return new Map(expressions.map((expression, index) => [`c${index}`, expression]));
}
