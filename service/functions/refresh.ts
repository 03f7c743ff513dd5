import { CatalogError, type contracts, type RequestOf } from "@tiltyard/protocol";
import { givenFields } from "../jobs/parameters.ts";
import { findBinding } from "../store/functions.ts";
import type { Store } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";

type Request = Pick<RequestOf<typeof contracts.alterTableBackfillColumns>, "id" | "column"> &
  Readonly<Record<string, unknown>>;

/** The Ray cluster of the runner's file that runs Functions with a GPU unless a request names another one. */
const gpuCluster = "gpu";

/** The fields of a request that the refresh of a column of a Function observes. */
const observed = ["branch", "column", "cluster", "priority", "timeout_seconds", "read_version"];

/**
 * Requires a column whose Function a job can evaluate.
 *
 * @returns The parameters of the job. All columns of a binding have the same job.
 * @throws CatalogError InvalidInput if the Function was dropped; Unsupported for options.
 */
export async function requireRefreshable(
  { store, rayClusters }: { readonly store: Store; readonly rayClusters: readonly string[] },
  { id }: TableRecord,
  bindingId: string,
  request: Request,
): Promise<{ readonly column: string; readonly function_binding: string; readonly cluster?: string }> {
  const { column, cluster } = request;
  const given = givenFields(request).find(([name]) => !observed.includes(name));
  if (given !== undefined)
    throw new CatalogError(
      "Unsupported",
      `${given[0]}: a refresh of ${column} computes the rows without a value and those whose inputs changed. Omit ${given[0]}`,
    );
  const binding = await findBinding(store.read, bindingId);
  const [first] = binding?.outputs ?? [];
  if (binding?.tableId === id && first !== undefined && binding.outputs.some((each) => each.column === column)) {
    return {
      column: first.column,
      function_binding: binding.id,
      ...(binding.definition.runtime.gpu &&
        cluster === undefined &&
        rayClusters.includes(gpuCluster) && { cluster: gpuCluster }),
    };
  }
  throw new CatalogError(
    "InvalidInput",
    `column: the function of ${column} was dropped. Drop the column and add it again`,
  );
}
