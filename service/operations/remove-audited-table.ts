import type { AnyContract, Identifier } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { requireTable } from "../domain/require.ts";
import type { Session } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import type { AuthorizedCaller, Catalog } from "./handler.ts";

interface Removal {
  readonly contract: AnyContract;
  readonly request: { readonly id: Identifier; readonly delimiter: string };
}

/**
 * Removes a table from the catalog and records the removal in the audit.
 *
 * @param remove Removes the table in the transaction of its audit record.
 * @returns The common response of these operations.
 * @throws CatalogError TableNotFound
 */
export async function removeAuditedTable(
  { contract, request }: Removal,
  { store, worker }: Catalog,
  caller: AuthorizedCaller,
  remove: (session: Session, table: TableRecord) => Promise<void>,
) {
  const identifier = request.id;
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });

  const table = await store.write(async (session) => {
    const found = await requireTable(session, identifier);
    await remove(session, found);
    await audit.record(session);
    return found;
  });
  worker.wake();
  return {
    transaction_id: audit.name,
    id: [...identifier],
    location: table.location,
    properties: { ...table.properties },
  };
}
