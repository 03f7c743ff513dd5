import type { Identifier } from "@tiltyard/protocol";
import type { CommitParts } from "../commits/parts.ts";
import { requireTable } from "../domain/require.ts";
import type { Caller } from "../domain/transaction.ts";
import { type Automation, putAutomation } from "../store/automations.ts";
import type { Session } from "../store/store.ts";
import { stateOf } from "./table-state.ts";

/** Registers an automation in the database transaction of its cause. @throws CatalogError TableNotFound */
export type Register = (session: Session, automation: Pick<Automation, "kind" | "target">) => Promise<void>;

/**
 * Prepares automations for new rows of a table. Existing rows are excluded.
 *
 * @throws CatalogError TableNotFound, TableVersionNotFound, Unsupported
 */
export async function prepareForNewRows(
  parts: CommitParts,
  identifier: Identifier,
  { principal }: Caller,
): Promise<Register> {
  const seen = await stateOf(parts, await requireTable(parts.store.read, identifier));
  return async (session, automation) => {
    const { id } = await requireTable(session, identifier);
    await putAutomation(session, { tableId: id, ...automation, principal: principal.name, seen });
  };
}
