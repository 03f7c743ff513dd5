import type { AnyContract, Identifier } from "@tiltyard/protocol";
import { carryOut, prepareAudit } from "../domain/audit.ts";
import { changeRefs } from "../refs/ref-files.ts";
import type { TableRecord } from "../store/tables.ts";
import type { Lease } from "../tasks/lease.ts";
import type { AuthorizedCaller, Catalog } from "./handler.ts";

interface RefChange {
  readonly contract: AnyContract;
  readonly request: { readonly id: Identifier; readonly delimiter: string };
  /** The tag or the branch, for the audit. */
  readonly properties: Readonly<Record<string, string>>;
}

/**
 * Changes a tag or a branch of a table, one change at a time, and records it in the audit.
 *
 * @param prepare Checks what the change needs, and returns the change. A request that it refuses is not in the audit.
 * @returns The answer of all these operations.
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
