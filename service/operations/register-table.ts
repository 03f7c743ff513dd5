import { CatalogError, contracts } from "@tiltyard/protocol";
import { adoptTable, listBranches } from "../commits/adopt.ts";
import { prepareAudit } from "../domain/audit.ts";
import { requireFreeLocation } from "../domain/locations.ts";
import { applyPolicy } from "../domain/policy.ts";
import { requireFreeName, requireNamespace } from "../domain/require.ts";
import { deregisterTable } from "../dropping/drop.ts";
import { findTable, insertTable } from "../store/tables.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.registerTable;

export const registerTable: Handler<typeof contract> = async (request, catalog, caller) => {
  const { store, storage, locations, worker } = catalog;
  const { id: identifier, mode = "Create", properties = {} } = request;
  const location = locations.read(request.location);
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });
  const branches = await listBranches(storage, location);
  if (branches.size === 0)
    throw new CatalogError("InvalidInput", `location: there is no Lance table at ${location.uri}`);

  const table = await store.write(
    async (session) => {
      const present = mode === "Overwrite" ? await findTable(session, identifier) : undefined;
      if (present !== undefined) await deregisterTable(session, present);
      else await requireFreeName(session, identifier);
      await requireNamespace(session, identifier.slice(0, -1));
      await requireFreeLocation(session, location);
      await audit.record(session);
      const inserted = await insertTable(session, { identifier, location: location.uri, properties });
      return applyPolicy(session, inserted, caller);
    },
    { locking: "tables" },
  );
  worker.wake();
  // The table is there from now on. Its versions are taken up as those of any writer past the catalog are.
  await adoptTable(catalog, table, branches, audit.id);
  return { transaction_id: audit.name, location: location.uri, properties };
};
