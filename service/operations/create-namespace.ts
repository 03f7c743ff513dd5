import { CatalogError, contracts, formatIdentifier } from "@tiltyard/protocol";
import { carryOut, prepareAudit } from "../domain/audit.ts";
import { requireNamespace } from "../domain/require.ts";
import { dropContents } from "../dropping/drop.ts";
import { deleteNamespace, findNamespace, insertNamespace } from "../store/namespaces.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.createNamespace;

export const createNamespace: Handler<"createNamespace"> = async (request, catalog, caller) => {
  const { id: identifier, mode = "Create", properties = {} } = request;
  const { store, dropRetentionMs, worker } = catalog;
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });
  const answer = { transaction_id: audit.name, properties };

  const isReplaced = mode === "Overwrite" && identifier.length > 0;
  if (isReplaced && (await findNamespace(store.read, identifier)) !== undefined) {
    await carryOut(store, audit, () =>
      dropContents(store, identifier, dropRetentionMs, async (session) => {
        await deleteNamespace(session, identifier);
        await insertNamespace(session, { identifier, properties });
      }),
    );
    worker.wake();
    return answer;
  }
  return store.write(async (session) => {
    const present = await findNamespace(session, identifier);
    if (present !== undefined && mode === "ExistOk") return { properties: { ...present.properties } };
    if (present !== undefined)
      throw new CatalogError("NamespaceAlreadyExists", `namespace ${formatIdentifier(identifier)} exists already`);
    await requireNamespace(session, identifier.slice(0, -1));
    await insertNamespace(session, { identifier, properties });
    await audit.record(session);
    return answer;
  });
};
