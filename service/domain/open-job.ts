import { isDeepStrictEqual } from "node:util";
import { CatalogError, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import { findOpenJobs } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";
import { type NewJob, prepareJob, requireNameable } from "./job.ts";
import { parametersOf } from "./parameters.ts";
import { requireTable } from "./require.ts";
import type { TableChange } from "./transaction.ts";

/**
 * Opens a job unless an open job does the same work. Two such jobs would undo each other's work.
 *
 * @returns The name of the job, or of the open job if its parameters are equal.
 * @throws CatalogError TableNotFound; ConcurrentModification if the parameters of the open job differ.
 */
export async function openOnce(store: Store, job: NewJob): Promise<string> {
  return store.write(
    async (session) => {
      const table = await requireTable(session, job.table);
      const open = (await findOpenJobs(session, table.id)).find((each) => doesTheSame(each, job.opened));
      if (open === undefined) {
        await job.open(session);
        return job.name;
      }
      if (isDeepStrictEqual(open.parameters, job.opened.parameters)) return job.nameOf(open.id);
      throw new CatalogError(
        "ConcurrentModification",
        `${describe(job)} has the open job ${job.nameOf(open.id)} with other parameters: wait for its end, or cancel it`,
      );
    },
    // The lock ensures that one of two concurrent requests sees the job of the other.
    { locking: "jobs" },
  );
}

/**
 * Opens the job of a request about one table, with the parameters of the request.
 *
 * @throws CatalogError like `requireNameable` and `openOnce`.
 */
export async function openTableJob(store: Store, { contract, request, caller }: TableChange): Promise<string> {
  requireNameable(request.id);
  const parameters = parametersOf({ ...request });
  const job = prepareJob({ contract, request, caller, table: request.id, parameters });
  return openOnce(store, job);
}

/** Requires that no job fills a column. @throws CatalogError TableNotFound, ConcurrentModification */
export async function requireNoOpenBackfill(store: Store, identifier: Identifier, column: string): Promise<void> {
  const { id } = await requireTable(store.read, identifier);
  const open = (await findOpenJobs(store.read, id)).find(({ parameters }) => parameters.column === column);
  if (open === undefined) return;
  const job = formatIdentifier([...open.namespace, open.id]);
  throw new CatalogError(
    "ConcurrentModification",
    `the column ${column} has the open job ${job}: wait for its end, or cancel it`,
  );
}

type Opened = Pick<NewJob["opened"], "operation" | "parameters">;

/** Reports whether two jobs on one table do the same work, for the same column if they fill one. */
export function doesTheSame(open: Opened, opened: Opened): boolean {
  return open.operation === opened.operation && open.parameters.column === opened.parameters.column;
}

function describe({ table: identifier, opened: { parameters } }: NewJob): string {
  const table = formatIdentifier(identifier);
  return parameters.column === undefined ? table : `${table}, column ${parameters.column},`;
}
