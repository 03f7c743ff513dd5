import { CatalogError, contracts } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { requireUnprotected } from "../domain/drop.ts";
import { requireFreeLocation } from "../domain/locations.ts";
import { findManifests } from "../domain/registration.ts";
import { requireFreeName, requireNamespace } from "../domain/require.ts";
import { deleteTable, findTable, insertTable } from "../store/tables.ts";
import { insertVersion } from "../store/versions.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.registerTable;

export const registerTable: Handler<typeof contract> = async (request, { store, storage, locations }, caller) => {
  const { id: identifier, mode = "Create", properties = {} } = request;
  const location = locations.read(request.location);
  const manifests = await findManifests(storage, location);
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });
  if (manifests.length === 0)
    throw new CatalogError("InvalidInput", `location: there is no Lance table at ${location.uri}`);

  await store.write(
    async (session) => {
      const present = mode === "Overwrite" ? await findTable(session, identifier) : undefined;
      if (present !== undefined) {
        requireUnprotected(present);
        await deleteTable(session, present.id);
      } else await requireFreeName(session, identifier);
      await requireNamespace(session, identifier.slice(0, -1));
      await requireFreeLocation(session, location);
      const { id: tableId } = await insertTable(session, { identifier, location: location.uri, properties });
      for (const manifest of manifests)
        await insertVersion(session, {
          tableId,
          branch: manifest.branch,
          version: manifest.version,
          manifestName: manifest.name,
          committedName: manifest.name,
          finished: true,
          manifestSize: undefined,
          eTag: undefined,
          metadata: undefined,
          timestampMillis: Date.now(),
          transactionId: audit.id,
        });
      await audit.record(session);
    },
    { locking: "tables" },
  );
  return { transaction_id: audit.name, location: location.uri, properties };
};
