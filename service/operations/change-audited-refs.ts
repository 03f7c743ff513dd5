import type { AnyContract, Identifier } from "@tiltyard/protocol";
import { carryOut, prepareAudit } from "../domain/audit.ts";
import { changeRefs } from "../refs/ref-files.ts";
import type { TableRecord } from "../store/tables.ts";
import type { Lease } from "../tasks/lease.ts";
import type { AuthorizedCaller, Catalog } from "./handler.ts";

interface RefChange {
  readonly contract: AnyContract;
  readonly request: { readonly id: Identifier; readonly delimiter: string };
  /** The name of the tag or branch, for the audit. */
  readonly properties: Readonly<Record<string, string>>;
}

/**
 * Changes a tag or a branch of a table, one change at a time, and records the change in the audit.
 *
 * @param prepare Validates the change and returns it. A rejected request is not recorded in the audit.
 * @returns The common response of these operations.
 */
export async function changeAuditedRefs(
  { contract, request, properties }: RefChange,
  catalog: Catalog,
  caller: AuthorizedCaller,
  prepare: (table: TableRecord, lease: Lease) => Promise<() => Promise<void>>,
): Promise<{ transaction_id: string }> {
  const audit = prepareAudit({ contract, request, caller, objects: [request.id], properties });
  await changeRefs(catalog, request.id, async (table, lease) =>
    carryOut(catalog.store, audit, await prepare(table, lease)),
  );
  return { transaction_id: audit.name };
}
