import { carryOut, prepareAudit, type TableChange } from "../domain/transaction.ts";
import { changeRefs } from "../refs/ref-files.ts";
import type { TableRecord } from "../store/tables.ts";
import type { Lease } from "../tasks/lease.ts";
import type { Catalog } from "./handler.ts";

/**
 * Changes a tag or a branch of a table, one change at a time, and records the change in the audit.
 *
 * @param change The change, with the name of the tag or branch as a property.
 * @param prepare Validates the change and returns it. A rejected request is not recorded in the audit.
 * @returns The common response of these operations.
 */
export async function changeAuditedRefs(
  catalog: Catalog,
  change: TableChange,
  prepare: (table: TableRecord, lease: Lease) => Promise<() => Promise<void>>,
): Promise<{ transaction_id: string }> {
  const audit = prepareAudit({ ...change, objects: [change.request.id] });
  await changeRefs(catalog, change.request.id, async (table, lease) =>
    carryOut(catalog.store, audit, await prepare(table, lease)),
  );
  return { transaction_id: audit.name };
}
