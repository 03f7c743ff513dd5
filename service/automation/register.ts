import type { Identifier } from "@tiltyard/protocol";
import type { CommitParts } from "../commits/parts.ts";
import { requireTable } from "../domain/require.ts";
import type { Caller } from "../domain/transaction.ts";
import { putAutomation } from "../store/automations.ts";
import { stateOf } from "./table-state.ts";

/**
 * Registers a column for backfills of new rows of its table. Existing rows are excluded.
 *
 * @throws CatalogError TableNotFound, TableVersionNotFound, Unsupported
 */
export async function backfillNewRows(
  parts: CommitParts,
  table: Identifier,
  column: string,
  caller: Caller,
): Promise<void> {
  await register(parts, table, { kind: "backfill", target: column }, caller);
}

/** Registers a view for refreshes after new rows of its source. @throws like `backfillNewRows` */
export async function refreshOnNewRows(
  parts: CommitParts,
  source: Identifier,
  view: Identifier,
  caller: Caller,
): Promise<void> {
  const { id } = await requireTable(parts.store.read, view);
  await register(parts, source, { kind: "refresh", target: String(id) }, caller);
}

async function register(
  parts: CommitParts,
  identifier: Identifier,
  what: { readonly kind: "backfill" | "refresh"; readonly target: string },
  { principal }: Caller,
): Promise<void> {
  const table = await requireTable(parts.store.read, identifier);
  const seen = await stateOf(parts, table);
  await parts.store.write(async (session) => {
    const { id } = await requireTable(session, identifier);
    await putAutomation(session, { tableId: id, ...what, principal: principal.name, seen });
  });
}
