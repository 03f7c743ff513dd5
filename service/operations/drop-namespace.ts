import { CatalogError, contracts, formatIdentifier } from "@tiltyard/protocol";
import { carryOut, prepareAudit } from "../domain/audit.ts";
import { requireNamespace } from "../domain/require.ts";
import { dropContents, isEmpty } from "../dropping/drop.ts";
import { deleteNamespace, findNamespace } from "../store/namespaces.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.dropNamespace;

/**
 * Drops a namespace. Cascade needs several database transactions: if one fails, the namespace remains with the rest of
 * its contents.
 */
export const dropNamespace: Handler<"dropNamespace"> = async (request, catalog, caller) => {
  const { id: identifier, mode = "Fail", behavior = "Restrict" } = request;
  const { store } = catalog;
  if (identifier.length === 0) throw new CatalogError("InvalidInput", "id: the root namespace cannot be dropped");
  if (mode === "Skip" && (await findNamespace(store.read, identifier)) === undefined) return {};
  const { properties } = await requireNamespace(store.read, identifier);
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });

  if (behavior === "Cascade")
    await carryOut(store, audit, () =>
      dropContents(store, identifier, catalog.dropRetentionMs, (session) => deleteNamespace(session, identifier)),
    );
  else
    await store.write(async (session) => {
      await requireNamespace(session, identifier);
      if (!(await isEmpty(session, identifier)))
        throw new CatalogError(
          "NamespaceNotEmpty",
          `namespace ${formatIdentifier(identifier)} is not empty: drop its contents first, or use the behavior Cascade`,
        );
      await deleteNamespace(session, identifier);
      await audit.record(session);
    });
  catalog.worker.wake();
  return { properties: { ...properties }, transaction_id: [...audit.identifier] };
};
