import type { Identifier } from "@tiltyard/protocol";
import type { CommitParts } from "../commits/parts.ts";
import { requireTable } from "../domain/require.ts";
import type { Caller } from "../domain/transaction.ts";
import { type Automation, putAutomation } from "../store/automations.ts";
import { stateOf } from "./table-state.ts";

/**
 * Registers an automation for new rows of a table. Existing rows are excluded.
 *
 * @throws CatalogError TableNotFound, TableVersionNotFound, Unsupported
 */
export async function registerForNewRows(
  parts: CommitParts,
  identifier: Identifier,
  automation: Pick<Automation, "kind" | "target">,
  { principal }: Caller,
): Promise<void> {
  const table = await requireTable(parts.store.read, identifier);
  const seen = await stateOf(parts, table);
  await parts.store.write(async (session) => {
    const { id } = await requireTable(session, identifier);
    await putAutomation(session, { tableId: id, ...automation, principal: principal.name, seen });
  });
}
