import { CatalogError, contracts } from "@tiltyard/protocol";
import pMap from "p-map";
import { adoptTable } from "../commits/adopt.ts";
import { requireReadableBases } from "../commits/bases.ts";
import { versionsAtOnce } from "../commits/commit.ts";
import { listBranches } from "../commits/discover.ts";
import { prepareAudit } from "../domain/audit.ts";
import { recordTable } from "../domain/new-table.ts";
import { deregisterTable } from "../dropping/drop.ts";
import { findTable } from "../store/tables.ts";
import { type Handler, mayRead, mayWrite } from "./handler.ts";

const contract = contracts.registerTable;

export const registerTable: Handler<"registerTable"> = async (request, catalog, caller) => {
  const { store, storage, locations, worker } = catalog;
  const { id: identifier, mode = "Create", properties = {} } = request;
  const location = locations.requested(request.location, identifier, caller.principal);
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });
  const branches = await listBranches(storage, location);
  if (branches.size === 0) throw new CatalogError("InvalidInput", `location: no Lance table exists at ${location.uri}`);
  const manifests = [...branches].flatMap(([branch, found]) => found.map(({ name }) => ({ branch, name })));
  const requireBases = (manifest: (typeof manifests)[number]) =>
    requireReadableBases(catalog, { ...manifest, location: location.uri }, mayRead(caller));
  await pMap(manifests, requireBases, { concurrency: versionsAtOnce });

  const table = await store.write(
    async (session) => {
      const present = mode === "Overwrite" ? await findTable(session, identifier) : undefined;
      if (present !== undefined) await deregisterTable(session, present);
      await audit.record(session);
      return recordTable(session, { identifier, location, properties }, caller, mayWrite(caller));
    },
    { locking: "tables" },
  );
  worker.wake();
  // The table exists from now on. Its versions are adopted like those of any writer outside the catalog.
  await adoptTable(catalog, table, branches, audit.id);
  return { transaction_id: audit.name, location: location.uri, properties };
};
