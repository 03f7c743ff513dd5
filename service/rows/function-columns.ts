import {
  type ColumnAlteration,
  type ComputedColumn,
  type FieldMetadataUpdate,
  fold,
  namesOf,
  problemOfValues,
  type UpdateRequest,
} from "@tiltyard/lance-worker";
import { CatalogError, functionBindingKey, mainBranch } from "@tiltyard/protocol";
import type { CommitDeps } from "../commits/deps.ts";
import { readManifest } from "../commits/read.ts";
import { type BindingRecord, deleteBinding, listBindings, setOutputs } from "../store/functions.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import type { VersionRecord } from "../store/versions.ts";

const reservedPrefix = "tiltyard.";

/** The effects of the columns that Functions compute on a change of their table. */
interface Guarded {
  /** The columns for which the rows of the change must not contain values. */
  readonly computed: readonly ComputedColumn[];
  /** Changes the bindings in the database transaction of the change; undefined if none changes. */
  readonly alongside: ((session: Session) => Promise<void>) | undefined;
}
export const unguarded: Guarded = { computed: [], alongside: undefined };

export interface ChangeArgs {
  readonly mode?: "append" | "overwrite";
  readonly updates?: readonly (UpdateRequest["updates"][number] | FieldMetadataUpdate)[];
  readonly alterations?: readonly ColumnAlteration[];
  readonly columns?: readonly string[];
}

/**
 * Protects the columns that Functions compute, and their inputs, from a change of their table.
 *
 * @param latest The version that the change follows.
 * @throws CatalogError InvalidInput for values of these columns, and for changes of them or their inputs.
 */
export async function guardFunctionColumns(
  deps: CommitDeps,
  table: Pick<TableRecord, "location">,
  latest: VersionRecord,
  operation: string,
  args: ChangeArgs,
): Promise<Guarded> {
  const { updates = [], alterations = [], columns = [] } = args;
  const ofMetadata = updates.flatMap((update) => ("metadata" in update ? update : []));
  requireOwnKeys(ofMetadata);
  const recorded = await listBindings(deps.store.read, latest.tableId);
  if (recorded.length === 0) return unguarded;
  const metadata = await readManifest(deps, table, latest, ({ columnMetadata }) => columnMetadata);
  // An earlier version of the table may lack the columns.
  const bindings = recorded.filter(({ id, outputs }) =>
    outputs.every(({ column }) => metadata.get(column)?.[functionBindingKey] === id),
  );
  const isMain = latest.branch === mainBranch;
  const computed = bindings.flatMap(({ functionName, outputs }) =>
    outputs.map(({ column }) => ({ column, function: functionName })),
  );
  switch (operation) {
    case "write": {
      if (args.mode !== "overwrite") return { computed, alongside: undefined };
      return { computed: [], alongside: isMain ? (session) => deleteAll(session, recorded) : undefined };
    }
    case "merge":
      return { computed, alongside: undefined };
    case "update":
    case "updateFieldMetadata": {
      const values = byColumn(updates.flatMap((update) => ("metadata" in update ? [] : update[0])));
      const replaced = byColumn(ofMetadata.flatMap(({ path, replace }) => (replace ? path : [])));
      for (const each of computed) {
        if (values.has(fold(each.column))) throw invalid(problemOfValues(each));
        if (replaced.has(fold(each.column)))
          throw invalid(`${each.column}: a function computes the column, so its metadata cannot be replaced`);
      }
      return unguarded;
    }
    case "alterColumns": {
      const renamed = alterOutputs(bindings, alterations);
      return { computed: [], alongside: isMain ? renamed : undefined };
    }
    case "dropColumns": {
      const dropped = dropOutputs(bindings, columns);
      return { computed: [], alongside: isMain ? (session) => deleteAll(session, dropped) : undefined };
    }
    default:
      return unguarded;
  }
}

async function deleteAll(session: Session, bindings: readonly BindingRecord[]): Promise<void> {
  for (const { id } of bindings) await deleteBinding(session, id);
}

function requireOwnKeys(updates: readonly FieldMetadataUpdate[]): void {
  const reserved = updates
    .flatMap(({ metadata }) => Object.keys(metadata))
    .find((key) => key.startsWith(reservedPrefix));
  if (reserved !== undefined) throw invalid(`metadata: the key ${reserved} is reserved for the catalog`);
}

/** Requires that inputs stay unchanged, and that outputs are only renamed. @returns The renaming of outputs. */
function alterOutputs(bindings: readonly BindingRecord[], alterations: readonly ColumnAlteration[]) {
  const pathsOf = (changed: readonly ColumnAlteration[]) => byColumn(changed.map(({ path }) => path));
  requireNoInputs(bindings, pathsOf(alterations.filter((each) => each.rename ?? each.dataType)), "renamed or changed");
  const isRename = ({ path, dataType, nullable }: ColumnAlteration) =>
    dataType === undefined && nullable === undefined && namesOf(path).length === 1;
  const retyped = pathsOf(alterations.filter((each) => !isRename(each)));
  const names = new Map(
    alterations.flatMap(({ path, rename }) => (rename === undefined ? [] : [[fold(namesOf(path)[0] ?? ""), rename]])),
  );
  const renamed: Pick<BindingRecord, "id" | "outputs">[] = [];
  for (const { id, functionName, outputs } of bindings) {
    const [path] = outputs.flatMap(({ column }) => retyped.get(fold(column)) ?? []);
    if (path !== undefined)
      throw invalid(`${path.text}: is computed by the function ${functionName}, so its type cannot be changed`);
    if (outputs.some(({ column }) => names.has(fold(column))))
      renamed.push({
        id,
        outputs: outputs.map((each) => ({ ...each, column: names.get(fold(each.column)) ?? each.column })),
      });
  }
  return async (session: Session) => {
    for (const each of renamed) await setOutputs(session, each);
  };
}

/** Requires that inputs stay, and that outputs are dropped together. @returns The bindings whose outputs are dropped. */
function dropOutputs(bindings: readonly BindingRecord[], columns: readonly string[]): readonly BindingRecord[] {
  const paths = byColumn(columns);
  const isDropped = (column: string) => paths.get(fold(column))?.some(({ names }) => names.length === 1) === true;
  const dropped = bindings.filter(({ outputs }) => outputs.every(({ column }) => isDropped(column)));
  const kept = bindings.filter((binding) => !dropped.includes(binding));
  for (const { functionName, outputs } of kept) {
    const [path] = outputs.flatMap(({ column }) => paths.get(fold(column)) ?? []);
    if (path !== undefined)
      throw invalid(
        `${path.text}: the function ${functionName} computes ${namesIn(outputs)} together. Drop all of them together`,
      );
  }
  requireNoInputs(kept, paths, "dropped");
  return dropped;
}

/** A path of a request with its names in lower case, because Lance finds them in any letter case. */
interface Path {
  readonly text: string;
  readonly names: readonly string[];
}

function byColumn(paths: readonly string[]): ReadonlyMap<string, readonly Path[]> {
  const parsed = paths.map((text) => ({ text, names: namesOf(text).map(fold) }));
  return Map.groupBy(parsed, ({ names: [column = ""] }) => column);
}

function requireNoInputs(
  bindings: readonly BindingRecord[],
  changed: ReadonlyMap<string, readonly Path[]>,
  change: string,
): void {
  for (const { functionName, inputs, outputs } of bindings)
    for (const input of inputs) {
      const names = namesOf(input.path).map(fold);
      const path = changed.get(names[0] ?? "")?.find((each) => each.names.every((name, at) => name === names[at]));
      if (path !== undefined)
        throw invalid(
          `${path.text}: is an input of the function ${functionName}, so it cannot be ${change}. Drop ${namesIn(outputs)} first`,
        );
    }
}

function namesIn(outputs: BindingRecord["outputs"]): string {
  return outputs.map(({ column }) => column).join(", ");
}

function invalid(message: string): CatalogError {
  return new CatalogError("InvalidInput", message);
}
