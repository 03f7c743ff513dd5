import { CatalogError, contracts, formatIdentifier } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { dropContents } from "../domain/drop.ts";
import { requireNamespace } from "../domain/require.ts";
import { deleteNamespace, findNamespace, insertNamespace } from "../store/namespaces.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.createNamespace;

export const createNamespace: Handler<typeof contract> = async (request, catalog, caller) => {
  const { id: identifier, mode = "Create", properties = {} } = request;
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });

  const { answer, dropped } = await catalog.store.write(async (session) => {
    const present = await findNamespace(session, identifier);
    if (present !== undefined && mode === "ExistOk")
      return { answer: { properties: { ...present.properties } }, dropped: [] };
    if (present !== undefined && (mode === "Create" || identifier.length === 0))
      throw new CatalogError("NamespaceAlreadyExists", `namespace ${formatIdentifier(identifier)} exists already`);
    await requireNamespace(session, identifier.slice(0, -1));
    const locations = present === undefined ? [] : await dropContents(session, identifier, catalog.dropRetentionMs);
    if (present !== undefined) await deleteNamespace(session, identifier);
    await insertNamespace(session, { identifier, properties });
    await audit.record(session);
    return {
      answer: { transaction_id: audit.name, properties },
      dropped: locations,
    };
  });
  for (const location of dropped) await catalog.finisher.deleteObjects(location);
  return answer;
};
