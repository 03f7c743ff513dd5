import { CatalogError, contracts, formatIdentifier } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { requireNamespace } from "../domain/require.ts";
import { dropContents, isEmpty } from "../dropping/drop.ts";
import { deleteNamespace, findNamespace } from "../store/namespaces.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.dropNamespace;

export const dropNamespace: Handler<typeof contract> = async (request, catalog, caller) => {
  const { id: identifier, mode = "Fail", behavior = "Restrict" } = request;
  if (identifier.length === 0) throw new CatalogError("InvalidInput", "id: the root namespace cannot be dropped");
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });

  const answer = await catalog.store.write(async (session) => {
    if (mode === "Skip" && (await findNamespace(session, identifier)) === undefined) return {};
    const { properties } = await requireNamespace(session, identifier);
    if (behavior === "Restrict" && !(await isEmpty(session, identifier)))
      throw new CatalogError(
        "NamespaceNotEmpty",
        `namespace ${formatIdentifier(identifier)} is not empty: drop what it holds first, or use the behavior Cascade`,
      );
    await dropContents(session, identifier, catalog.dropRetentionMs);
    await deleteNamespace(session, identifier);
    await audit.record(session);
    return { properties: { ...properties }, transaction_id: [...audit.identifier] };
  });
  catalog.worker.wake();
  return answer;
};
