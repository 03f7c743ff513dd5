import { hash } from "node:crypto";
import { columnsAsStream, namesOf } from "@tiltyard/lance-worker";
import {
  CatalogError,
  type contracts,
  type JsonArrowSchema,
  jsonOrUndefined,
  type RequestOf,
} from "@tiltyard/protocol";
import { z } from "zod";
import type { CommitDeps } from "../commits/deps.ts";
import { requireTable } from "../domain/require.ts";
import type { Reader, ReadRequest } from "../rows/reader.ts";
import { runnable } from "./definitions.ts";

type NewColumn = RequestOf<typeof contracts.alterTableAddColumns>["new_columns"][number];
type VirtualColumn = NonNullable<NewColumn["virtual_column"]>;

const udfFolder = "_udfs";
/** The metadata key of a column that a function computes, and the prefix of its further metadata. */
const prefix = "virtual_column";
export const manifestOfColumn = `${prefix}.manifest`;
/** The metadata keys that enable automatic jobs for new rows, and that group the columns which a function fills together. */
const autoBackfill = `${prefix}.auto_backfill`;
const group = `${prefix}.unpack_group`;
/** The names of columns that Geneva fills. In a column of another name, it erases the values of rows that it does not compute. */
const fillable = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** The only backend of Geneva, and the required part of its payload. */
const genevaBackend = "DockerUDFSpecV1";
const GenevaPayload = z.object({ udf_pickle: z.base64().min(1) });

/** The maximum length of the metadata of the columns that a request adds, as JSON. Every output has all of its function. */
const metadataLengthMax = 4 * 1024 * 1024;

interface StoredUdf {
  readonly path: string;
  readonly content: Buffer;
}

/**
 * Stores functions with the table. They are named by their content, so an unused one does no harm.
 *
 * @returns An Arrow stream with their columns and without rows.
 * @throws CatalogError InvalidInput for functions that no job could run, and for invalid columns.
 */
export async function storeFunctions(
  deps: CommitDeps & { readonly rows: Reader },
  at: ReadRequest,
  columns: readonly VirtualColumn[],
): Promise<ReadableStream<Uint8Array>> {
  const { result: schema } = await deps.rows.read("schema", at, {});
  const present = namesIn(schema);
  const functions = columns.map((column) => ({ column, udf: readUdf(column) }));
  const lengthOf = ({ column, udf }: (typeof functions)[number]) =>
    column.outputs.length * JSON.stringify(metadataOf(column, udf)).length;
  const length = functions.reduce((sum, each) => sum + lengthOf(each), 0);
  if (length > metadataLengthMax)
    throw invalid(
      `outputs: the metadata of all columns together has ${length} characters, and at most ${metadataLengthMax} are allowed: each output has a copy of the manifest`,
    );
  const stream = columnsAsStream(functions.flatMap(({ column, udf }) => virtualFields(column, udf, present)));
  for (const { udf } of functions) await store(deps, at, udf);
  return new Blob([stream]).stream();
}

type Alteration = RequestOf<typeof contracts.alterTableAlterColumns>["alterations"][number];

/**
 * Stores another function for a column that a function computes.
 *
 * @returns The change of the metadata of the column.
 * @throws CatalogError InvalidInput for other columns, for columns that share their function, and for functions that no
 * job could run.
 */
export async function replaceFunction(
  deps: CommitDeps & { readonly rows: Reader },
  at: ReadRequest,
  { path, virtual_column }: Pick<Alteration, "path" | "virtual_column">,
) {
  const { result: schema } = await deps.rows.read("schema", at, {});
  const { metadata } = schema.fields.find(({ name }) => name === path) ?? {};
  if (metadata?.[prefix] !== "true" || metadata[group] !== undefined)
    throw invalid(`${path} has no function, or shares it with other columns: drop the column and add it again`);
  requireFillable(path);
  if (virtual_column === undefined) throw invalid("is missing");
  const { udf, udf_name, input_columns, ...more } = virtual_column;
  if (udf === undefined || udf_name === undefined || input_columns === undefined)
    throw invalid("needs udf, udf_name and input_columns");
  const given = { ...more, udf, udf_name, input_columns };
  requireInputs(given, namesIn(schema));
  const stored = readUdf(given);
  await store(deps, at, stored);
  // The manifest belongs to the former function.
  const former = { [manifestOfColumn]: null, [`${prefix}.manifest_checksum`]: null };
  const replaced: Record<string, string | null> = { ...former, ...metadataOf(given, stored) };
  return { path, metadata: replaced };
}

async function store(deps: CommitDeps, { id }: ReadRequest, { path, content }: StoredUdf): Promise<void> {
  const { location } = await requireTable(deps.store.read, id);
  await (await deps.storage.at(location)).create(`${location.path}/${path}`, content);
}

/** Requires a column that Geneva can fill without a loss of values. @throws CatalogError InvalidInput */
export function requireFillable(column: string): void {
  if (!fillable.test(column))
    throw new CatalogError(
      "InvalidInput",
      `column: Geneva loses values of a column with the name ${column}: rename it, with the letters A to Z, digits and _ only`,
    );
}

/** Decodes a function. @throws CatalogError InvalidInput if no job could run it. */
function readUdf({ udf, udf_backend = genevaBackend }: Pick<Function, "udf" | "udf_backend">): StoredUdf {
  const content = Buffer.from(udf, "base64");
  if (udf_backend === genevaBackend && !GenevaPayload.safeParse(jsonOrUndefined(content.toString("utf8"))).success)
    throw invalid("udf: must be a function in the format of Geneva: Base64 of a JSON object with udf_pickle");
  return { path: `${udfFolder}/${hash("sha256", content)}`, content };
}

/**
 * Returns the columns of a function without values. The metadata of each contains the path and the inputs of the
 * function, in Geneva's own format.
 *
 * @throws CatalogError InvalidInput for inputs that are not columns.
 */
function virtualFields(
  virtual: VirtualColumn,
  udf: StoredUdf,
  present: ReadonlySet<string | undefined>,
): JsonArrowSchema["fields"] {
  requireInputs(virtual, present);
  if (virtual.outputs.length === 0) throw invalid("outputs: must have at least one output");
  for (const { column } of virtual.outputs) requireFillable(column);
  const shared = metadataOf(virtual, udf);
  return virtual.outputs.map(({ column, data_type, metadata }) => ({
    name: column,
    type: data_type,
    // Rows without a computed value are null.
    nullable: true,
    metadata: { ...shared, ...metadata },
  }));
}

/** The fields of a function that requests to add and to alter columns share. */
type Function = NonNullable<Alteration["virtual_column"]> & Pick<VirtualColumn, "udf" | "udf_name" | "input_columns">;

function namesIn({ fields }: JsonArrowSchema): ReadonlySet<string | undefined> {
  return new Set(fields.map(({ name }) => name));
}

function requireInputs({ input_columns }: Function, present: ReadonlySet<string | undefined>): void {
  for (const input of input_columns)
    if (!present.has(namesOf(input)[0])) throw invalid(`input_columns: the column ${input} does not exist`);
}

function metadataOf(virtual: Function, udf: StoredUdf): Record<string, string> {
  // The checksum is Geneva's own hash of some fields of the manifest, so it is stored unchanged.
  const { manifest, manifest_checksum } = virtual;
  return {
    ...virtual.field_metadata,
    [prefix]: "true",
    [`${prefix}.udf_backend`]: virtual.udf_backend ?? genevaBackend,
    [`${prefix}.udf_name`]: virtual.udf_name,
    [`${prefix}.udf`]: udf.path,
    [`${prefix}.udf_inputs`]: JSON.stringify(virtual.input_columns),
    [autoBackfill]: String(virtual.auto_backfill ?? false),
    ...(manifest !== undefined && { [manifestOfColumn]: runnable(manifest) }),
    ...(manifest_checksum !== undefined && { [`${prefix}.manifest_checksum`]: manifest_checksum }),
  };
}

/** Reports whether a column is filled automatically for new rows. @param metadata The metadata of the column. */
export function isAutomatic(metadata: Readonly<Record<string, string>>): boolean {
  return metadata[prefix] === "true" && metadata[autoBackfill] === "true";
}

/** Returns the first of the columns that a function fills together; undefined if it fills one column only. */
export function firstColumnOf(
  fields: JsonArrowSchema["fields"],
  { [group]: id }: Readonly<Record<string, string>>,
): string | undefined {
  return id === undefined ? undefined : fields.find(({ metadata }) => metadata?.[group] === id)?.name;
}

/**
 * Returns the columns that are filled automatically for new rows of any writer. Of columns that are filled together,
 * only the first is returned.
 *
 * @param columns The metadata of each column.
 */
export function autoBackfillColumns(columns: ReadonlyMap<string, Readonly<Record<string, string>>>): string[] {
  const automatic = [...columns].filter(([, given]) => isAutomatic(given));
  const byGroup = Map.groupBy(automatic, ([name, given]) => given[group] ?? name);
  return [...byGroup.values()].flatMap(([first]) => first?.[0] ?? []);
}

function invalid(detail: string): CatalogError {
  return new CatalogError("InvalidInput", `virtual_column.${detail}`);
}
