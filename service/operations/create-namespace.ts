import { CatalogError, contracts, formatIdentifier } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { requireNamespace } from "../domain/require.ts";
import { dropContents } from "../dropping/drop.ts";
import { deleteNamespace, findNamespace, insertNamespace } from "../store/namespaces.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.createNamespace;

export const createNamespace: Handler<typeof contract> = async (request, catalog, caller) => {
  const { id: identifier, mode = "Create", properties = {} } = request;
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });

  const answer = await catalog.store.write(async (session) => {
    const present = await findNamespace(session, identifier);
    if (present !== undefined && mode === "ExistOk") return { properties: { ...present.properties } };
    if (present !== undefined && (mode === "Create" || identifier.length === 0))
      throw new CatalogError("NamespaceAlreadyExists", `namespace ${formatIdentifier(identifier)} exists already`);
    await requireNamespace(session, identifier.slice(0, -1));
    if (present !== undefined) {
      await dropContents(session, identifier, catalog.dropRetentionMs);
      await deleteNamespace(session, identifier);
    }
    await insertNamespace(session, { identifier, properties });
    await audit.record(session);
    return { transaction_id: audit.name, properties };
  });
  // What the namespace held before is purged.
  if (mode === "Overwrite") catalog.worker.wake();
  return answer;
};
