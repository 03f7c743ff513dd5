import { isDeepStrictEqual } from "node:util";
import {
  type AlterTransactionAction,
  CatalogError,
  defaultDelimiter,
  formatIdentifier,
  type Identifier,
  jobPrefix,
  type TransactionStatus,
} from "@tiltyard/protocol";
import { insertJob, isOpen, updateJob } from "../store/jobs.ts";
import type { Session } from "../store/store.ts";
import { insertTask } from "../store/tasks.ts";
import type { NewTransaction, TransactionRecord } from "../store/transactions.ts";
import { isParameter } from "./parameters.ts";
import { type Caller, type Change, newTransaction, type TransactionNames } from "./transaction.ts";

/** A job before its insertion. */
export interface NewJob extends TransactionNames {
  readonly opened: Omit<NewTransaction, "status">;
  /** Opens the job as Queued. Its runner changes the status. */
  open(session: Session): Promise<void>;
}

/**
 * Prepares a job.
 *
 * @param change The change, whose properties contain the parameters of the job.
 * @throws CatalogError InvalidInput if the properties leave no space for the notes of attempts.
 */
export function prepareJob(change: Change): NewJob {
  requireFitting("the job's parameters", change.properties ?? {}, parametersLengthMax);
  const { names, opened } = newTransaction(change);
  return { ...names, opened, open: (session) => insertJob(session, { ...opened, status: "Queued" }) };
}

/** Returns the principal that the audit names for the changes of a job: the job and its opener. */
export function principalOfJob({ namespace, id, principal }: TransactionRecord): string {
  return `${jobPrefix}${formatIdentifier([...namespace, id])} for ${principal}`;
}

/** The allowed transitions of a job. A status without any is final. */
const moves: Record<TransactionStatus, readonly TransactionStatus[]> = {
  Queued: ["Running", "Failed", "Canceled"],
  Running: ["Succeeded", "Failed", "Canceled"],
  Succeeded: [],
  Failed: [],
  Canceled: [],
};

/** The maximum length of all properties of a job as JSON, and of the parameters among them. */
const propertiesLengthMax = 256 * 1024;
const parametersLengthMax = 224 * 1024;

/**
 * Cancels a job. A running attempt learns of it with its next heartbeat. A canceled job stays unchanged.
 *
 * @throws CatalogError ConcurrentModification if the job has ended in another way.
 */
export function cancel(job: TransactionRecord, { principal }: Pick<Caller, "principal">): TransactionRecord {
  if (job.status === "Canceled") return job;
  const status = move(job.status, "Canceled");
  const properties = { ...job.properties, reason: `canceled by ${principal.name}` };
  return { ...job, status, properties, updatedAtMillis: Date.now() };
}

/**
 * Writes the changes of a job. After a failure or a cancellation, a task also ends Geneva's own record of the job,
 * which Geneva's clients read.
 */
export async function writeJob(session: Session, job: TransactionRecord): Promise<void> {
  await updateJob(session, job);
  if (job.status !== "Failed" && job.status !== "Canceled") return;
  await insertTask(session, { kind: "end_record", subject: JSON.stringify([...job.namespace, job.id]) });
}

type State = Pick<TransactionRecord, "status" | "properties" | "operation">;

/**
 * Applies actions in order to the status and the properties of a job. An ended job accepts only actions without an
 * effect, so that a request can be retried after a lost response.
 *
 * @returns The new state; the same object if nothing changes in an ended job.
 * @throws CatalogError ConcurrentModification for a forbidden transition, for a change of an ended job, and for a
 * triggered mode `Fail`; InvalidInput for a parameter. After an error, none of the actions is applied.
 */
export function applyActions<Job extends State>(job: Job, actions: readonly AlterTransactionAction[]): Job {
  const applied = { ...job, ...actions.reduce(applyAction, job as State) };
  if (!isOpen(job)) {
    if (isDeepStrictEqual(applied, job)) return job;
    throw new CatalogError("ConcurrentModification", `the job has ended as ${job.status}: its properties stay`);
  }
  requireFitting("properties", applied.properties, propertiesLengthMax);
  return applied;
}

/** Requires that properties do not exceed a length as JSON. @throws CatalogError InvalidInput */
export function requireFitting(what: string, properties: State["properties"], lengthMax: number): void {
  if (JSON.stringify(properties).length > lengthMax)
    throw new CatalogError("InvalidInput", `${what}: may hold ${lengthMax} characters as JSON, no more`);
}

/**
 * Reports whether Lance's clients can name a table. All of them join the parts of its identifier with the default
 * delimiter.
 */
export function isNameable(table: Identifier): boolean {
  return table.every((part) => !part.includes(defaultDelimiter));
}

/** Requires a table that Lance's clients can name, because no job could open any other. @throws CatalogError InvalidInput */
export function requireNameable(table: Identifier): void {
  if (isNameable(table)) return;
  throw new CatalogError(
    "InvalidInput",
    `id: a job reaches its table by Lance's clients, which take each ${defaultDelimiter} in a name for the end of a namespace: rename it`,
  );
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

function move(from: TransactionStatus, to: TransactionStatus): TransactionStatus {
  if (from === to || moves[from].includes(to)) return to;
  const allowed = moves[from].length === 0 ? `${from} is final` : `from ${from} it may go to ${moves[from].join(", ")}`;
  throw new CatalogError("ConcurrentModification", `a job cannot go from ${from} to ${to}: ${allowed}`);
}
