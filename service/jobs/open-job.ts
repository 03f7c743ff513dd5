import { isDeepStrictEqual } from "node:util";
import { fold, namesOf } from "@tiltyard/lance-worker";
import { CatalogError, formatIdentifier, type Identifier, mainBranch } from "@tiltyard/protocol";
import { branchOf, requireTable } from "../domain/require.ts";
import type { TableChange } from "../domain/transaction.ts";
import { findJobById, findOpenJobs, type OpenJobRecord } from "../store/jobs.ts";
import type { Session, Store } from "../store/store.ts";
import { type NewJob, type OpenJobMaxima, prepareJob, requireNameable } from "./job.ts";
import { parametersOf } from "./parameters.ts";

export interface JobDeps {
  readonly store: Store;
  readonly openJobMaxima: OpenJobMaxima;
}

/**
 * Opens a job unless an open job does the same work. Two such jobs would undo each other's work.
 *
 * @returns The name of the job, or of the open job if its parameters are equal.
 * @throws CatalogError TableNotFound, TooManyJobs; InvalidTableState if the parameters of the open job differ.
 */
export async function openOnce({ store, openJobMaxima }: JobDeps, job: NewJob): Promise<string> {
  return store.write(
    async (session) => {
      const table = await requireTable(session, job.table);
      const open = (await findOpenJobs(session, table.id)).find((each) => doesTheSame(each, job.opened));
      if (open === undefined) {
        await job.open(session, openJobMaxima);
        return job.name;
      }
      const present = await findJobById(session, open.id);
      if (isDeepStrictEqual(present?.parameters, job.opened.parameters)) return job.nameOf(open.id);
      const { column } = job.opened.parameters;
      const subject = `${formatIdentifier(job.table)}${column === undefined ? "" : `, column ${column},`}`;
      throw new CatalogError(
        "InvalidTableState",
        `${subject} has the open job ${job.nameOf(open.id)} with other parameters: wait for its end, or cancel it`,
      );
    },
    // The lock ensures that one of two concurrent requests sees the job of the other.
    { locking: "jobs" },
  );
}

/** Opens the job of a request. @throws CatalogError like `requireNameable` and `openOnce`. */
export async function openTableJob(deps: JobDeps, { request, caller }: TableChange): Promise<string> {
  const { operation } = caller;
  requireNameable(request.id);
  const parameters = parametersOf(operation, { ...request });
  return openOnce(deps, prepareJob({ operation, caller, table: request.id, parameters }));
}

/**
 * Requires that no job fills or indexes the columns of paths in the branch of a request, because it would fail with the
 * change of its column, or change another column of the same name. Jobs fill main only.
 *
 * @returns A function that requires it again in the database transaction of the change, which may last minutes.
 * @throws CatalogError TableNotFound, InvalidTableState
 */
export async function requireNoOpenColumnJob(
  store: Store,
  request: { readonly id: Identifier; readonly branch?: string | undefined },
  paths: readonly string[],
): Promise<(session: Session) => Promise<void>> {
  const isOfMain = branchOf(request) === mainBranch;
  const columnOf = (path: string) => fold(namesOf(path)[0] ?? path);
  const columns = new Set(paths.map(columnOf));
  const check = async (session: Session) => {
    if (!isOfMain) return;
    const { id } = await requireTable(session, request.id);
    const open = (await findOpenJobs(session, id)).find(({ column }) => column && columns.has(columnOf(column)));
    if (open === undefined) return;
    const job = formatIdentifier([...open.namespace, open.id]);
    const problem = `the column ${open.column} has the open job ${job}: wait for its end, or cancel it`;
    throw new CatalogError("InvalidTableState", problem);
  };
  await check(store.read);
  return check;
}

/** Reports whether an open job does the work of another one on its table, for the same column if it fills one. */
export function doesTheSame(
  open: OpenJobRecord,
  { operation, parameters }: Pick<NewJob["opened"], "operation" | "parameters">,
): boolean {
  return open.operation === operation && open.column === parameters.column;
}
