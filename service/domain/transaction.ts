import { type AlterTransactionAction, CatalogError, type TransactionStatus } from "@tiltyard/protocol";
import type { TransactionRecord } from "../store/transactions.ts";

/** The moves that a transaction may make; a status without one is final. */
const moves: Record<TransactionStatus, readonly TransactionStatus[]> = {
  Queued: ["Running", "Failed", "Canceled"],
  Running: ["Succeeded", "Failed", "Canceled"],
  Succeeded: [],
  Failed: [],
  Canceled: [],
};

/** The most that the properties of one transaction may hold, as JSON. */
const propertiesLengthMax = 256 * 1024;

type State = Pick<TransactionRecord, "status" | "properties">;

/**
 * Applies actions in order to a transaction's status and properties.
 *
 * @throws CatalogError ConcurrentModification for a move that is not allowed and for a
 *   mode `Fail` that triggers; then none of the actions is applied.
 */
export function applyActions(state: State, actions: readonly AlterTransactionAction[]): State {
  const applied = actions.reduce(applyAction, state);
  requireFitting("properties", applied.properties, propertiesLengthMax);
  return applied;
}

/** @throws CatalogError InvalidInput for properties that have more characters as JSON than they may have. */
export function requireFitting(what: string, properties: State["properties"], lengthMax: number): void {
  if (JSON.stringify(properties).length > lengthMax)
    throw new CatalogError("InvalidInput", `${what}: may hold ${lengthMax} characters as JSON, no more`);
}

function applyAction(state: State, action: AlterTransactionAction): State {
  const { setStatusAction, setPropertyAction, unsetPropertyAction } = action;
  if (setStatusAction !== undefined) return { ...state, status: move(state.status, setStatusAction.status) };
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
  throw new CatalogError("ConcurrentModification", `a transaction cannot go from ${from} to ${to}: ${allowed}`);
}
