import { isDeepStrictEqual } from "node:util";
import {
  type AlterTransactionAction,
  CatalogError,
  defaultDelimiter,
  type Identifier,
  type TransactionStatus,
} from "@tiltyard/protocol";
import { insertJob, isOpen, updateJob } from "../store/jobs.ts";
import type { Session } from "../store/store.ts";
import { insertTask } from "../store/tasks.ts";
import type { NewTransaction, TransactionRecord } from "../store/transactions.ts";
import { isParameter } from "./parameters.ts";
import { type Caller, type Change, newTransaction, type TransactionNames } from "./transaction.ts";

/** A job that is still to be opened. */
export interface NewJob extends TransactionNames {
  readonly opened: Omit<NewTransaction, "status">;
  /** Opens it as Queued: its runner changes the status. */
  open(session: Session): Promise<void>;
}

/**
 * @param change With what the job needs to know in its properties.
 * @throws CatalogError InvalidInput for properties that leave no room for what attempts note.
 */
export function prepareJob(change: Change): NewJob {
  requireFitting("the job's parameters", change.properties ?? {}, parametersLengthMax);
  const { names, opened } = newTransaction(change);
  return { ...names, opened, open: (session) => insertJob(session, { ...opened, status: "Queued" }) };
}

/** The moves that a job may make; a status without one is final. */
const moves: Record<TransactionStatus, readonly TransactionStatus[]> = {
  Queued: ["Running", "Failed", "Canceled"],
  Running: ["Succeeded", "Failed", "Canceled"],
  Succeeded: [],
  Failed: [],
  Canceled: [],
};

/** The most that the properties of one job may hold, as JSON; and what it is opened with, of that. */
const propertiesLengthMax = 256 * 1024;
const parametersLengthMax = 224 * 1024;

/**
 * Cancels a job: a running attempt learns of it by its heartbeat. A canceled job stays as it is.
 *
 * @throws CatalogError ConcurrentModification for a job that has ended otherwise.
 */
export function cancel(job: TransactionRecord, { principal }: Pick<Caller, "principal">): TransactionRecord {
  if (job.status === "Canceled") return job;
  const status = move(job.status, "Canceled");
  const properties = { ...job.properties, reason: `canceled by ${principal.name}` };
  return { ...job, status, properties, updatedAtMillis: Date.now() };
}

/** Writes the changes of a job. A task also ends Geneva's own record of a failed or canceled one, which its clients read. */
export async function writeJob(session: Session, job: TransactionRecord): Promise<void> {
  await updateJob(session, job);
  if (job.status !== "Failed" && job.status !== "Canceled") return;
  await insertTask(session, { kind: "end_record", subject: JSON.stringify([...job.namespace, job.id]) });
}

type State = Pick<TransactionRecord, "status" | "properties" | "operation">;

/**
 * Applies actions in order to a job's status and properties. An ended job accepts only actions that change nothing, so
 * that a request can be retried after a lost answer.
 *
 * @returns The state as it was, the same object, when nothing is changed of a job that has ended.
 * @throws CatalogError ConcurrentModification for a move that is not allowed, for a change of what has ended,
 *   and for a mode `Fail` that triggers; InvalidInput for a parameter. Then none of the actions is applied.
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

/** @throws CatalogError InvalidInput for properties that have more characters as JSON than they may have. */
export function requireFitting(what: string, properties: State["properties"], lengthMax: number): void {
  if (JSON.stringify(properties).length > lengthMax)
    throw new CatalogError("InvalidInput", `${what}: may hold ${lengthMax} characters as JSON, no more`);
}

/** Whether Lance's clients can name a table: all of them join the parts of its identifier with the default delimiter. */
export function isNameable(table: Identifier): boolean {
  return table.every((part) => !part.includes(defaultDelimiter));
}

/** @throws CatalogError InvalidInput for a table that Lance's clients cannot name: no job could open it. */
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
