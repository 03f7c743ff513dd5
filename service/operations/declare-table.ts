import { contracts } from "@tiltyard/protocol";
import { prepareAudit } from "../domain/audit.ts";
import { recordTable } from "../domain/new-table.ts";
import { vendCredentials } from "../domain/vending.ts";
import { type Handler, mayWrite } from "./handler.ts";

const contract = contracts.declareTable;

export const declareTable: Handler<"declareTable"> = async (request, catalog, caller) => {
  const { store, locations } = catalog;
  const { id: identifier, properties = {} } = request;
  const audit = prepareAudit({ contract, request, caller, objects: [identifier] });
  const location =
    request.location === undefined
      ? locations.choose(identifier)
      : locations.requested(request.location, identifier, caller.principal);
  const vended = await vendCredentials(catalog, caller, identifier, location.uri, request);

  await store.write(
    async (session) => {
      await recordTable(session, { identifier, location, properties }, caller, mayWrite(caller));
      await audit.record(session);
    },
    { locking: "tables" },
  );
  return {
    transaction_id: audit.name,
    location: location.uri,
    ...vended,
    properties,
    managed_versioning: true,
  };
};
