import { randomUUID } from "node:crypto";
import {
  CatalogError,
  formatIdentifier,
  functionBindingKey,
  functionErrorsMax,
  type Identifier,
  parseIdentifier,
} from "@tiltyard/protocol";
import { z } from "zod";
import { isAllowed, withRole } from "../../auth/authorize.ts";
import { keyText, readPage } from "../../domain/page.ts";
import { requireNamespace, requireTable } from "../../domain/require.ts";
import { makeAudited, recordAudit } from "../../domain/transaction.ts";
import { openBake } from "../../functions/bake.ts";
import { parseRegistration } from "../../functions/registration.ts";
import { toFunctionVersion, versionNotFound } from "../../functions/version.ts";
import {
  deleteFunction,
  type FunctionRecord,
  findFunction,
  findFunctionBy,
  insertFunction,
  latestVersionOf,
  listBindings,
  listErrors,
  listFailures,
  listFunctions as listRecords,
  listUsesOf,
} from "../../store/functions.ts";
import { nameOf, toPath } from "../../store/path.ts";
import type { Session } from "../../store/store.ts";
import type { AuthorizedCaller, Catalog, Handler } from "../handler.ts";

/** A definition may have 256 KiB. */
const functionsAtOnce = 25;
/** The beginning of the ids of the jobs that register Functions without packages. They are done at once and have no record. */
const registrationPrefix = "function-";

/**
 * Registers a Function. An equal registration of its name has the same version. A job installs its packages, and the
 * next registration after its failure opens it again.
 */
export const createFunction: Handler<"createFunction"> = async (request, { store, openJobMaxima }, caller) => {
  const { id: identifier, delimiter } = request;
  const [name, namespace] = [requireName(identifier), identifier.slice(0, -1)];
  const registration = parseRegistration(request);
  const isReady = registration.definition.runtime.packages === undefined;
  const register = async (session: Session) => {
    await requireNamespace(session, namespace);
    const equal = await findFunctionBy(session, { ...nameOf(identifier), digest: registration.digest });
    if (equal !== undefined) return equal;
    const record = {
      ...{ id: randomUUID(), namespace, name, version: (await latestVersionOf(session, identifier)) + 1 },
      ...{ ...registration, isReady, jobId: undefined },
      ...{ principal: caller.principal.name, createdAtMillis: Date.now() },
    };
    await insertFunction(session, record);
    await recordAudit(session, { caller, objects: [identifier] });
    return record;
  };
  const job_id = await store.write(
    async (session) => {
      const registered = await register(session);
      if (!registered.isReady) return openBake(session, registered, caller, openJobMaxima);
      return formatIdentifier([...namespace, `${registrationPrefix}${registered.id}`], delimiter);
    },
    { locking: "jobs" },
  );
  return { job_id };
};

/** Returns the name of a new Function or secret. @throws CatalogError InvalidInput if LanceDB's clients reject it. */
export function requireName(identifier: Identifier): string {
  const name = identifier.at(-1) ?? "";
  if (/^[A-Za-z0-9_.-]{1,255}$/.test(name)) return name;
  throw new CatalogError(
    "InvalidInput",
    "id: the name must have 1 to 255 letters, digits, underscores, dots or hyphens",
  );
}

/** Returns the Function that a job without a record has registered; undefined for all other jobs. */
export async function findRegistered(session: Session, job: Identifier): Promise<FunctionRecord | undefined> {
  const id = job.at(-1) ?? "";
  if (!id.startsWith(registrationPrefix)) return undefined;
  return findFunctionBy(session, { id: id.slice(registrationPrefix.length), namespace: toPath(job.slice(0, -1)) });
}

export const describeFunction: Handler<"describeFunction"> = async ({ id, version, database }, { store }) => {
  const found = await findFunction(store.read, id, Number(version));
  if (found !== undefined) return toFunctionVersion(found, database);
  throw versionNotFound(id, version);
};

export const listFunctions: Handler<"listFunctions"> = async (request, { store }) => {
  const { id: namespace, database } = request;
  await requireNamespace(store.read, namespace);
  const { items, ...page } = await readPage(
    { name: "functions", key: z.object({ name: keyText, version: z.int32() }), atOnce: functionsAtOnce },
    request,
    (after, limit) => listRecords(store.read, namespace, { after, limit }),
  );
  return { functions: items.map((record) => ({ definition: toFunctionVersion(record, database) })), ...page };
};

/** Drops a version that no column uses. */
export const dropFunction: Handler<"dropFunction"> = async (request, catalog, caller) => {
  const { store } = catalog;
  const { id: identifier, version } = request;
  const present = await findFunction(store.read, identifier, Number(version));
  if (present === undefined) return { dropped: false };
  const isReadable = withRole(caller.principal, "reader");
  const unused = await unusedBindings(present.id, catalog, caller);
  await makeAudited(store, { caller, objects: [identifier] }, async (session) => {
    const uses = (await listUsesOf(session, present.id)).filter(({ id }) => !unused.has(id));
    if (uses.length > 0) {
      const use = uses.find(({ table }) => isReadable(table));
      const where =
        use === undefined
          ? "a column of a table that you may not read"
          : `the column ${use.outputs[0]?.column} of the table ${formatIdentifier(use.table)}`;
      throw new CatalogError(
        "InvalidInput",
        `version: ${where} uses version ${version} of ${formatIdentifier(identifier)}. Drop the column first`,
      );
    }
    await deleteFunction(session, present.id);
  });
  return { dropped: true };
};

/** Returns the bindings to a Function whose columns another program removed from their table, which the caller may read. */
async function unusedBindings(functionId: string, { store, rows }: Catalog, caller: AuthorizedCaller) {
  const unused = new Set<string>();
  for (const { id, table } of await listUsesOf(store.read, functionId)) {
    if (!isAllowed(caller.principal, { role: "reader", object: table })) continue;
    const { result } = await rows.read("schema", { id: table, caller }, {});
    if (result.fields.every(({ metadata }) => metadata?.[functionBindingKey] !== id)) unused.add(id);
  }
  return unused;
}

/** Lists the rows that Functions could not compute. The columns of a binding share the errors of their job. */
export const listFunctionErrors: Handler<"listFunctionErrors"> = async (request, { store }) => {
  const { column: asked, delimiter } = request;
  const { id: tableId } = await requireTable(store.read, request.id);
  const limit = Math.min(request.limit ?? functionErrorsMax, functionErrorsMax);
  const job = request.job_id === undefined ? undefined : (parseIdentifier(request.job_id, delimiter).at(-1) ?? "");
  const bindings = await listBindings(store.read, tableId);
  const [first] = bindings.find(({ outputs }) => outputs.some(({ column }) => column === asked))?.outputs ?? [];
  const filter = { tableId, jobId: job, column: first?.column ?? asked, limit: limit + 1 };
  const found = await listErrors(store.read, filter);
  const failures = await listFailures(store.read, { ...filter, limit });
  const jobNamed = (each: string) => formatIdentifier([...request.id.slice(0, -1), each], delimiter);
  return {
    records: found.slice(0, limit).map((each) => ({
      job_id: jobNamed(each.jobId),
      fragment_id: each.fragmentId,
      ...(each.rowOffset >= 0 && { row_offset: each.rowOffset }),
      column: asked ?? each.column,
      function: each.functionName,
      function_version: String(each.functionVersion),
      table_version: each.tableVersion,
      error_type: each.errorType,
      error_message: each.errorMessage,
      created_at_millis: each.createdAtMillis,
    })),
    fragments: failures.map(({ jobId, fragmentId, rows, recorded }) => ({
      job_id: jobNamed(jobId),
      fragment_id: fragmentId,
      rows_skipped: rows,
      rows_recorded: recorded,
    })),
    truncated: found.length > limit || failures.length > 0,
  };
};
