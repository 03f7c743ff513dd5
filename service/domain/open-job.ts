import { isDeepStrictEqual } from "node:util";
import { CatalogError, formatIdentifier, type Identifier } from "@tiltyard/protocol";
import { findOpenJobs } from "../store/jobs.ts";
import type { Session, Store } from "../store/store.ts";
import { type NewJob, prepareJob, requireNameable } from "./job.ts";
import { parametersIn, parametersOf } from "./parameters.ts";
import { requireTable } from "./require.ts";
import type { Change, Origin } from "./transaction.ts";

/**
 * Opens a job unless an open job does the same work. Two such jobs would undo each other's work.
 *
 * @param check Runs in the database transaction that opens the job, and throws to reject it.
 * @returns The name of the job, or of the open job if its parameters are equal.
 * @throws CatalogError ConcurrentModification if the parameters of the open job differ.
 */
export async function openOnce(
  store: Store,
  job: NewJob,
  check: (session: Session) => Promise<unknown> = async () => {},
): Promise<string> {
  return store.write(
    async (session) => {
      await check(session);
      const open = (await findOpenJobs(session, job.opened.objects[0] ?? [])).find((each) => doesTheSame(each, job));
      if (open === undefined) {
        await job.open(session);
        return job.name;
      }
      if (isDeepStrictEqual(parametersIn(open), { ...job.opened.properties })) return job.nameOf(open.id);
      throw new CatalogError(
        "ConcurrentModification",
        `${describe(job)} has an open job with other parameters, ${job.nameOf(open.id)}: wait for its end, or cancel it`,
      );
    },
    // The lock ensures that one of two concurrent requests sees the job of the other.
    { locking: "jobs" },
  );
}

interface TableRequest extends Origin, Pick<Change, "contract"> {
  readonly request: { readonly id: Identifier; readonly delimiter: string };
}

/**
 * Opens the job of a request about one table, with the parameters of the request.
 *
 * @throws CatalogError TableNotFound; also like `requireNameable` and `openOnce`.
 */
export async function openTableJob(store: Store, { contract, request, caller }: TableRequest): Promise<string> {
  requireNameable(request.id);
  const properties = parametersOf({ ...request });
  const job = prepareJob({ contract, request, caller, objects: [request.id], properties });
  return openOnce(store, job, (session) => requireTable(session, request.id));
}

type Opened = Pick<NewJob["opened"], "operation" | "properties">;

/** Reports whether two jobs on one table do the same work, for the same column if they fill one. */
function doesTheSame(open: Opened, { opened }: NewJob): boolean {
  return open.operation === opened.operation && open.properties.column === opened.properties.column;
}

function describe({ opened: { objects, properties } }: NewJob): string {
  const table = formatIdentifier(objects[0] ?? []);
  return properties.column === undefined ? table : `${table}, column ${properties.column},`;
}
