import { isDeepStrictEqual } from "node:util";
import { CatalogError, type Identifier, managementContracts } from "@tiltyard/protocol";
import { automationOf } from "../domain/policy.ts";
import { requireFreeName } from "../domain/require.ts";
import { type Origin, recordAudit } from "../domain/transaction.ts";
import { listSourcesOf } from "../store/automations.ts";
import { findDroppedTable, restoreTableName } from "../store/dropped-tables.ts";
import type { Session } from "../store/store.ts";
import { deleteTask, noteTask } from "../store/tasks.ts";
import { purgeOf } from "./purge.ts";

/** The highest id of a table, which the database stores in 32 bits. */
const tableIdMax = 2 ** 31 - 1;

/**
 * Undrops a table.
 *
 * @param dropped The id of the table, and its former name if the rights of the caller depend on it.
 * @param to The new name; the former one if undefined.
 * @returns The names of the table and of the transaction.
 * @throws CatalogError TableNotFound, NamespaceNotFound, TableAlreadyExists
 */
export async function undropTable(
  session: Session,
  origin: Origin,
  dropped: { readonly id: number; readonly identifier?: Identifier },
  to: Identifier | undefined,
): Promise<{ readonly identifier: Identifier; readonly transaction: string }> {
  const isTableId = Number.isInteger(dropped.id) && dropped.id > 0 && dropped.id <= tableIdMax;
  const found = isTableId ? await findDroppedTable(session, dropped.id) : undefined;
  const { identifier: expected = found?.identifier } = dropped;
  // The comparison uses parts, because joined parts of different names may be equal.
  if (found === undefined || !isDeepStrictEqual(expected, found.identifier))
    throw new CatalogError("TableNotFound", "no dropped table has this id and name; see the list of dropped tables");
  const identifier = to ?? found.identifier;
  await requireFreeName(session, identifier);
  await restoreTableName(session, found.id, identifier);
  await deleteTask(session, purgeOf(found.id));
  // Jobs that were due meanwhile open now: those of the table, and of the sources from which it is refreshed.
  for (const id of [found.id, ...(await listSourcesOf(session, found.id))]) await noteTask(session, automationOf(id));
  const change = { ...origin, contract: managementContracts.undropTable, objects: [identifier] };
  return { identifier, transaction: await recordAudit(session, change) };
}
