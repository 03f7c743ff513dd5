import { isDeepStrictEqual } from "node:util";
import { type AlterTransactionAction, CatalogError, isOpen } from "@tiltyard/protocol";
import { requireTransaction } from "../domain/require.ts";
import { propertiesOf } from "../domain/transaction.ts";
import { alterJob, changed, move, requireFitting } from "../jobs/job.ts";
import { isParameter } from "../jobs/parameters.ts";
import type { JobRecord } from "../store/jobs.ts";
import type { Session } from "../store/store.ts";
import type { TransactionRecord } from "../store/transactions.ts";
import type { Handler } from "./handler.ts";

export const describeTransaction: Handler<"describeTransaction"> = async (request, { store }) =>
  toAnswer(await requireTransaction(store.read, request.id));

/** Changes the status and the properties of a job. Audit records cannot be altered. */
export const alterTransaction: Handler<"alterTransaction"> = async (request, { store }) => {
  const { after } = await alterJob(store, request.id, (session, job) => applyActions(session, job, request.actions));
  return toAnswer(after);
};

function toAnswer(record: TransactionRecord | JobRecord) {
  return {
    status: record.status,
    context: {
      operation: record.operation,
      objects: JSON.stringify(record.objects),
      principal: record.principal,
      request_id: record.requestId,
      created_at: new Date(record.createdAtMillis).toISOString(),
      updated_at: new Date(record.updatedAtMillis).toISOString(),
    },
    properties: propertiesOf(record),
  };
}

/** The maximum length of the properties and of the reason of a job as JSON. Lists contain both. */
const propertiesLengthMax = 16 * 1024;

type State = Pick<JobRecord, "status" | "properties" | "operation">;

/**
 * Applies actions of AlterTransaction in order to the status and the properties of a job. Its reason is presented as a
 * property. An ended job accepts only actions without an effect, so that a request can be retried after a lost response.
 *
 * @returns The new job; the same object if nothing changes in an ended job.
 * @throws CatalogError ConcurrentModification for a forbidden transition, for a change of an ended job, and for a
 * triggered mode `Fail`; InvalidInput for a parameter. After an error, none of the actions is applied.
 */
function applyActions(session: Session, job: JobRecord, actions: readonly AlterTransactionAction[]): JobRecord {
  const { operation, status, reason, properties } = job;
  const given: State = { operation, status, properties: { ...properties, ...(reason !== undefined && { reason }) } };
  const applied = actions.reduce(applyAction, given);
  if (!isOpen(job)) {
    if (isDeepStrictEqual(applied, given)) return job;
    throw new CatalogError("ConcurrentModification", `the job has ended as ${status}: its properties cannot change`);
  }
  const { reason: newReason, ...newProperties } = applied.properties;
  requireFitting("properties", newProperties, propertiesLengthMax);
  if (newReason !== reason) requireFitting("reason", { reason: newReason ?? "" }, propertiesLengthMax);
  return changed(session, job, { status: applied.status, reason: newReason, properties: newProperties });
}

function applyAction(state: State, action: AlterTransactionAction): State {
  const { setStatusAction, setPropertyAction, unsetPropertyAction } = action;
  if (setStatusAction !== undefined) return { ...state, status: move(state.status, setStatusAction.status) };
  const name = setPropertyAction?.key ?? unsetPropertyAction?.key ?? "";
  // A runner executes the parameters with the rights of the job's opener.
  if (isParameter(state.operation, name))
    throw new CatalogError(
      "InvalidInput",
      `property ${JSON.stringify(name)} is a parameter of ${state.operation}: open another job to change it`,
    );
  const properties = new Map(Object.entries(state.properties));
  if (setPropertyAction !== undefined) {
    const { key, value, mode } = setPropertyAction;
    if (properties.has(key) && mode === "Fail")
      throw new CatalogError("ConcurrentModification", `property ${JSON.stringify(key)} is set already`);
    if (!properties.has(key) || mode !== "Skip") properties.set(key, value);
  }
  if (unsetPropertyAction !== undefined) {
    const { key, mode } = unsetPropertyAction;
    if (!properties.delete(key) && mode === "Fail")
      throw new CatalogError("ConcurrentModification", `property ${JSON.stringify(key)} is not set`);
  }
  return { ...state, properties: Object.fromEntries(properties) };
}
