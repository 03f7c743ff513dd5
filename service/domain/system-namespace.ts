import { contracts, type Identifier, systemNamespaceOf } from "@tiltyard/protocol";
import { findNamespace, insertNamespace } from "../store/namespaces.ts";
import type { Store } from "../store/store.ts";
import { type Origin, prepareAudit } from "./transaction.ts";

/** Creates the namespace of Geneva's records before the first function of a table. Geneva's clients expect it to exist. */
export async function ensureSystemNamespace(
  { store, isolatedNamespaces }: { readonly store: Store; readonly isolatedNamespaces: readonly string[] },
  origin: Origin,
  table: Identifier,
): Promise<void> {
  const identifier = systemNamespaceOf(table, isolatedNamespaces);
  if ((await findNamespace(store.read, identifier)) !== undefined) return;
  const audit = prepareAudit({ ...origin, contract: contracts.createNamespace, objects: [identifier] });
  await store.write(async (session) => {
    if ((await findNamespace(session, identifier)) !== undefined) return;
    // The isolated namespace may have been dropped since this request started.
    if (identifier.length > 1 && (await findNamespace(session, identifier.slice(0, -1))) === undefined) return;
    await insertNamespace(session, { identifier, properties: {} });
    await audit.record(session);
  });
}
