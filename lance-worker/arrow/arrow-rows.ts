import { ownValue } from "@tiltyard/protocol";

type ColumnKind = "text" | "integer";

/** Creates an Arrow stream from rows of the catalog itself. */
export async function rowsAsStream<Columns extends Readonly<Record<string, ColumnKind>>>(
  columns: Columns,
  rows: readonly { readonly [Name in keyof Columns]: string | number }[],
): Promise<ReadableStream<Uint8Array>> {
  const arrow = await import("apache-arrow");
  const vectors = Object.entries(columns).map(([name, kind]) => {
    const values = rows.map((row) => ownValue(row, name));
    const vector =
      kind === "text"
        ? arrow.vectorFromArray(values.map(String), new arrow.Utf8())
        : arrow.vectorFromArray(
            values.map((value) => BigInt(value ?? 0)),
            new arrow.Int64(),
          );
    return [name, vector];
  });
  return new Blob([arrow.tableToIPC(new arrow.Table(Object.fromEntries(vectors)), "stream")]).stream();
}
