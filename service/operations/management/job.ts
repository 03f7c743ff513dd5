import { literal, toExpression } from "@tiltyard/lance-worker";
import {
  CatalogError,
  contracts,
  formatIdentifier,
  hasKind,
  isOfClient,
  isOpen,
  parseIdentifier,
  shown,
  systemNamespaceOf,
} from "@tiltyard/protocol";
import { generateApiKey, hashApiKey } from "../../auth/api-key.ts";
import { isAllowed } from "../../auth/authorize.ts";
import { afterEndMs, grantsOfAttempt } from "../../auth/job-key.ts";
import { viewOf } from "../../commits/read.ts";
import { keyText, readScannedPage } from "../../domain/page.ts";
import { requireJob, requireTable, tableNotFound } from "../../domain/require.ts";
import { catalogOrigin, recordAudit } from "../../domain/transaction.ts";
import { openBake } from "../../functions/bake.ts";
import { versionNotFound } from "../../functions/version.ts";
import { listDefinitions } from "../../geneva/definitions.ts";
import { alterJob, cancel, pause, prepareJob, principalOfJob, resume, toJob, toJobSummary } from "../../jobs/job.ts";
import { openOnce } from "../../jobs/open-job.ts";
import { parametersOf } from "../../jobs/parameters.ts";
import { isQueued, queuePositions } from "../../jobs/queue.ts";
import { deleteJobKeys, putApiKey } from "../../store/api-keys.ts";
import { countFailures, findFunction, listErrors, type RowErrorRecord } from "../../store/functions.ts";
import { findAttempt } from "../../store/job-attempts.ts";
import type { JobRecord, JobSummaryRecord } from "../../store/jobs.ts";
import { findTable, findTableById } from "../../store/tables.ts";
import { listJobs as list } from "../../store/transaction-lists.ts";
import { requireReadableSource } from "../../views/refresh.ts";
import type { AuthorizedCaller, Catalog, Handler } from "../handler.ts";
import { linesOf, requireLatest, requireNotEnded } from "./job-attempt.ts";

/** Opens a job that no runner claims, because the client that opened it executes it. */
export const openJob: Handler<"openJob"> = async (request, { store, openJobMaxima }, caller) => {
  const { operation } = caller;
  const parameters = parametersOf(operation, { ...request });
  const job = prepareJob({ operation, caller, table: request.id, parameters });
  await store.write((session) => job.open(session, openJobMaxima), { locking: "jobs" });
  return { job_id: job.name };
};

/** The maximum number of jobs of a page. Each may have 16 KiB of properties, and a reason of the same length. */
const pageSizeMax = 300;

/** Returns a function for the details of jobs that depend on the time and on other jobs. */
async function presentDetails({ store, stalledAfterMs }: Catalog, jobs: readonly JobSummaryRecord[]) {
  const positions = jobs.some(isQueued) ? await queuePositions(store) : undefined;
  return ({ id, status, progressedAtMillis: since }: JobSummaryRecord) => {
    const isStalled = status === "Running" && since !== undefined && store.read.time() - since >= stalledAfterMs;
    return { ...(isStalled && { stalled_since_millis: since }), queue_position: positions?.get(id) };
  };
}

export const listJobs: Handler<"listJobs"> = async (request, catalog) => {
  const { id: within, delimiter, principal, status: statuses, ascending = false } = request;
  const table = request.table === undefined ? undefined : parseIdentifier(request.table, delimiter);
  const filter = { within, table, principal, statuses };
  const { items, ...page } = await readScannedPage(
    { name: `jobs ${ascending}`, key: keyText, most: pageSizeMax },
    request,
    (after, limit) => list(catalog.store.read, filter, { after, limit, ascending }),
    ({ id }) => id,
  );
  const detailsOf = await presentDetails(catalog, items);
  return { jobs: items.map((job) => ({ ...toJobSummary(job, delimiter), ...detailsOf(job) })), ...page };
};

/** Lists the definitions for the jobs of the tables in a namespace. */
export const listJobDefinitions: Handler<"listJobDefinitions"> = async ({ id }, catalog, caller) => {
  const { manifest, cluster } = await listDefinitions(catalog, { id: [...id, "table"], caller });
  return { manifests: manifest, clusters: cluster, runner_clusters: catalog.rayClusters };
};

export const describeJob: Handler<"describeJob"> = async ({ id, delimiter }, catalog) => {
  const job = await requireJob(catalog.store.read, id);
  const detailsOf = await presentDetails(catalog, [job]);
  return { job: { ...toJob(job, delimiter), ...detailsOf(job) } };
};

/**
 * Creates the key of an attempt and deletes the earlier keys of the job. The audit records the principal of the key for
 * all changes of the job. The opener of the job and the caller must have the rights of the job.
 */
export const createJobKey: Handler<"createJobKey"> = async (request, { store, isolatedNamespaces }, caller) => {
  const { id: identifier, attempt } = request;
  return store.write(async (session) => {
    const job = await requireJob(session, identifier);
    requireLatest(job, attempt);
    await requireNotEnded(session, job);
    // A runner that was paused since its claim must not replace the key of a process that another runner has started.
    if (job.startedAtMillis !== undefined)
      throw new CatalogError("ConcurrentModification", `attempt ${attempt} has started and keeps its key`);
    await deleteJobKeys(session, job.id, session.time() - afterEndMs);
    const principal = principalOfJob(job);
    const { id, key } = generateApiKey();
    const of = { id: job.id, attempt, creator: caller.principal.name };
    await putApiKey(session, id, principal, hashApiKey(key), of);
    // A key without rights would only fail later, within the job.
    await grantsOfAttempt(session, of, isolatedNamespaces).catch((error: unknown) => {
      if (!hasKind(error, "Unauthenticated")) throw error;
      throw new CatalogError("PermissionDenied", error.message, { cause: error });
    });
    const properties = { api_key_id: id, principal, attempt: String(attempt) };
    const transaction_id = await recordAudit(session, { caller, objects: job.objects, properties });
    return { transaction_id, api_key_id: id, principal, key };
  });
};

export const cancelJob: Handler<"cancelJob"> = async ({ id, delimiter }, { store }, caller) => {
  const { after } = await alterJob(store, id, (session, job) => cancel(session, job, caller));
  return { job: toJob(after, delimiter) };
};

export const pauseJob: Handler<"pauseJob"> = async ({ id, delimiter }, { store }) => ({
  job: toJob((await alterJob(store, id, pause)).after, delimiter),
});

export const resumeJob: Handler<"resumeJob"> = async ({ id, delimiter }, { store }) => ({
  job: toJob((await alterJob(store, id, resume)).after, delimiter),
});

export const retryJob: Handler<"retryJob"> = async (request, catalog, caller) => {
  const { store } = catalog;
  const job = await requireJob(store.read, request.id);
  const { status, operation } = job;
  if (isOpen(job) || (status === "Succeeded" && request.failed_rows !== true))
    throw new CatalogError(
      "ConcurrentModification",
      `the job is ${status}: only failed and canceled jobs can be retried`,
    );
  if (isOfClient(job))
    throw new CatalogError("InvalidInput", "the client that opened the job executes it: start it there again");
  // Finished rows are not those of the version that the former job has read.
  const { read_version: _, ...parameters } =
    request.failed_rows === true ? parametersForFailedRows(job) : job.parameters;
  if (job.tableId === undefined) return { job_id: await retryBake(job, catalog, caller) };
  const table = (await findTableById(store.read, job.tableId))?.identifier;
  // The table may have been renamed into a namespace of others.
  if (table === undefined || !isAllowed(caller.principal, { role: "writer", object: table }))
    throw tableNotFound(job.objects[0] ?? []);
  const isRefresh = operation === contracts.refreshMaterializedView.operationId;
  const view = isRefresh ? await viewOf(catalog, await requireTable(store.read, table)) : undefined;
  if (view !== undefined) await requireReadableSource(store.read, view, caller);
  // The parameters may contain an environment, whose code must not get rights that its author lacks.
  const author = Object.keys(parameters).length > 0 ? (job.author ?? job.principal) : undefined;
  const again = prepareJob({ operation, caller, table, parameters, author });
  return { job_id: await openOnce(catalog, again) };
};

/** Returns the parameters of a job that computes the failed rows of another one. */
function parametersForFailedRows({ operation, parameters, namespace, id }: JobRecord): JobRecord["parameters"] {
  const isBackfill = operation === contracts.alterTableBackfillColumns.operationId;
  if (!isBackfill || parameters.function_binding !== undefined)
    throw new CatalogError(
      "InvalidInput",
      "failed_rows: only a backfill of a function of Geneva records failed rows. Any other job computes them again when its request is repeated",
    );
  return { ...parameters, failed_rows_of: formatIdentifier([...namespace, id]) };
}

/** Opens the job that installs the packages of a Function again. @throws CatalogError FunctionNotFound, TooManyJobs */
async function retryBake(
  { namespace, objects: [name = []], parameters }: JobRecord,
  { store, openJobMaxima }: Catalog,
  caller: AuthorizedCaller,
): Promise<string> {
  return store.write(
    async (session) => {
      const { version = 0 } = parameters;
      const registered = await findFunction(session, name, version);
      // The key of an attempt may write its job alone.
      if (registered === undefined || !isAllowed(caller.principal, { role: "writer", object: namespace }))
        throw versionNotFound(name, version);
      if (!registered.isReady) return openBake(session, registered, caller, openJobMaxima);
      throw new CatalogError("ConcurrentModification", "the packages of the function are installed already");
    },
    { locking: "jobs" },
  );
}

export const describeJobLog: Handler<"describeJobLog"> = async ({ id }, { store }) => {
  const job = await requireJob(store.read, id);
  return { lines: linesOf((await findAttempt(store.read, job.id, job.attempt))?.logTail ?? "") };
};

/** The table in which Geneva records errors of batches and rows. */
const errorsTable = "geneva_errors";

/** The maximum size of the errors that are read, whose tracebacks are then truncated. */
const bytesMax = 4 * 1024 * 1024;

/** Lists the errors of a job. A reader of the job may read Geneva's records of its errors. */
export const listJobErrors: Handler<"listJobErrors"> = async (request, catalog) => {
  const { store, rows, isolatedNamespaces } = catalog;
  const job = await requireJob(store.read, request.id);
  if (job.tableId === undefined) return { errors: [] };
  if (job.parameters.function_binding !== undefined) {
    const found = await listErrors(store.read, { tableId: job.tableId, jobId: job.id, limit: shown.rows });
    return { errors: found.map(toFailure), rows_failed: await countFailures(store.read, job.id) };
  }
  const identifier = [...job.namespace, job.id];
  const id = [...systemNamespaceOf(identifier, isolatedNamespaces), errorsTable];
  if ((await findTable(store.read, id)) === undefined) return { errors: [] };
  const filter = toExpression(`job_id = ${literal(identifier.join("$"))}`);
  const { result } = await rows.read(
    "firstRows",
    { id, caller: catalogOrigin },
    { limit: shown.rows, filter, whole: true, bytesMax },
  );
  const names = result.columns.map(({ name }) => name);
  return {
    errors: result.rows.map((row) => {
      const text = (name: string) => row[names.indexOf(name)]?.text;
      const trace = text("error_trace")?.slice(-shown.traceCharacters).toWellFormed();
      return {
        type: text("error_type") ?? "",
        message: (text("error_message") ?? "").slice(0, shown.characters).toWellFormed(),
        trace: trace === "" ? undefined : trace,
        column: text("column_name") ?? "",
        fragment_id: text("fragment_id"),
        row_address: text("row_address"),
        timestamp: text("timestamp") ?? "",
      };
    }),
  };
};

function toFailure({ errorType, errorMessage, column, fragmentId, rowOffset, createdAtMillis }: RowErrorRecord) {
  const address = (BigInt(fragmentId) << 32n) + BigInt(rowOffset);
  return {
    type: errorType,
    message: errorMessage.slice(0, shown.characters).toWellFormed(),
    column,
    fragment_id: String(fragmentId),
    ...(rowOffset >= 0 && { row_address: String(address) }),
    timestamp: new Date(createdAtMillis).toISOString(),
  };
}
