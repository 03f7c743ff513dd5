import { createHash } from "node:crypto";
import { CatalogError, type contracts, type JsonArrowSchema, type RequestOf } from "@tiltyard/protocol";
import type { Field } from "apache-arrow";
import { z } from "zod";
import type { CommitParts } from "../commits/parts.ts";
import { requireTable } from "../domain/require.ts";
import { parseLocation } from "../storage/location.ts";
import { emptyStream, toArrowType } from "./arrow/arrow-type.ts";
import type { Rows, VersionRequest } from "./rows.ts";

type NewColumn = RequestOf<typeof contracts.alterTableAddColumns>["new_columns"][number];
type VirtualColumn = NonNullable<NewColumn["virtual_column"]>;

/** Where Geneva looks for a function, in the folder of the table. */
const udfFolder = "_udfs";
/** Marks a column that a function computes, and is the prefix of its metadata. */
const prefix = "virtual_column";
/** The metadata of a column in which the manifest of its function is. */
export const manifestOfColumn = `${prefix}.manifest`;
/** Whether new rows are filled by jobs that the catalog opens; and which columns a function fills together. */
const autoBackfill = `${prefix}.auto_backfill`;
const group = `${prefix}.unpack_group`;
/** The backend that Geneva has, and the part of its payload that it cannot do without. */
const genevaBackend = "DockerUDFSpecV1";
const GenevaPayload = z.object({ udf_pickle: z.base64().min(1) });

/** A function as it is stored: its place in the folder of the table, and its content. */
interface StoredUdf {
  readonly path: string;
  readonly content: Buffer;
}

/**
 * Stores functions with the table. They are named by their content: one that no column uses does no harm.
 *
 * @returns An Arrow stream that has their columns and no rows.
 * @throws CatalogError InvalidInput for functions that no job could run, and for columns that cannot be.
 */
export async function storeFunctions(
  { store, storage, rows }: CommitParts & { readonly rows: Rows },
  at: VersionRequest,
  columns: readonly VirtualColumn[],
): Promise<ReadableStream<Uint8Array>> {
  const { result: schema } = await rows.read("schema", at, {});
  const location = parseLocation((await requireTable(store.read, at.id)).location);
  const objects = await storage.at(location);
  const fields: Field[] = [];
  for (const each of columns) {
    const udf = readUdf(each);
    fields.push(...(await virtualFields(each, udf, schema)));
    await objects.create(`${location.path}/${udf.path}`, udf.content);
  }
  return emptyStream(await import("apache-arrow"), fields);
}

/** @throws CatalogError InvalidInput for what no job could run. */
function readUdf({ udf, udf_backend = genevaBackend }: VirtualColumn): StoredUdf {
  const content = Buffer.from(udf, "base64");
  if (udf_backend === genevaBackend && !GenevaPayload.safeParse(parseJson(content)).success)
    throw invalid("udf: is not a function as Geneva writes it: Base64 of a JSON object with udf_pickle");
  return { path: `${udfFolder}/${sha256(content)}`, content };
}

/**
 * The columns of a function, without values: each says in its metadata where the function is and what it takes,
 * as Geneva itself writes it.
 *
 * @throws CatalogError InvalidInput for inputs that are no columns and types that no column can have.
 */
async function virtualFields(virtual: VirtualColumn, udf: StoredUdf, schema: JsonArrowSchema): Promise<Field[]> {
  const arrow = await import("apache-arrow");
  const present = schema.fields.map(({ name }) => name);
  for (const input of virtual.input_columns)
    if (!present.includes(rootOf(input))) throw invalid(`input_columns: there is no column ${input}`);
  if (virtual.outputs.length === 0) throw invalid("outputs: a function has one output at least");
  // The checksum is Geneva's own, over some of the manifest's fields: it is kept as it is sent.
  const { manifest, manifest_checksum } = virtual;
  const shared = {
    ...virtual.field_metadata,
    [prefix]: "true",
    [`${prefix}.udf_backend`]: virtual.udf_backend ?? genevaBackend,
    [`${prefix}.udf_name`]: virtual.udf_name,
    [`${prefix}.udf`]: udf.path,
    [`${prefix}.udf_inputs`]: JSON.stringify(virtual.input_columns),
    [autoBackfill]: String(virtual.auto_backfill ?? false),
    ...(manifest !== undefined && { [manifestOfColumn]: manifest }),
    ...(manifest_checksum !== undefined && { [`${prefix}.manifest_checksum`]: manifest_checksum }),
  };
  return virtual.outputs.map(({ column, data_type, metadata }) => {
    const all = new Map(Object.entries({ ...shared, ...metadata }));
    // Rows that are not computed yet have no value.
    return new arrow.Field(column, toArrowType(arrow, data_type), true, all);
  });
}

/** Whether a column is to be filled when new rows come. @param metadata Of the column. */
export function isAutomatic(metadata: Readonly<Record<string, string>>): boolean {
  return metadata[prefix] === "true" && metadata[autoBackfill] === "true";
}

/**
 * The columns that are to be filled when new rows come, of any writer; of those that are filled together, the first.
 *
 * @param columns The metadata of each column.
 */
export function autoBackfillColumns(columns: ReadonlyMap<string, Readonly<Record<string, string>>>): string[] {
  const automatic = [...columns].filter(([, given]) => isAutomatic(given));
  const byGroup = Map.groupBy(automatic, ([name, given]) => given[group] ?? name);
  return [...byGroup.values()].flatMap(([first]) => first?.[0] ?? []);
}

/** The column that a path begins with; a segment in backticks may have dots. */
function rootOf(path: string): string {
  const [, quoted, plain] = /^(?:`((?:[^`]|``)*)`|([^.]+))/.exec(path) ?? [];
  return quoted?.replaceAll("``", "`") ?? plain ?? path;
}

function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

function parseJson(content: Buffer): unknown {
  try {
    return JSON.parse(content.toString("utf8"));
  } catch {
    return undefined;
  }
}

function invalid(detail: string): CatalogError {
  return new CatalogError("InvalidInput", `virtual_column.${detail}`);
}
