import { CatalogError, contracts, formatIdentifier, type RequestOf } from "@tiltyard/protocol";
import { policyIn } from "../domain/policy.ts";
import { withProtectionOf } from "../domain/protection.ts";
import { makeTable } from "../rows/make-table.ts";
import { findTable } from "../store/tables.ts";
import { inTurn, isUnwritten } from "./first-version.ts";
import type { AuthorizedCaller, Catalog, Handler } from "./handler.ts";

const contract = contracts.createTable;
type Request = RequestOf<typeof contract>;

/**
 * Creates a table together with its rows, or writes one that is only declared. Overwriting a table creates a version, so
 * that its former rows can be restored.
 */
export const createTable: Handler<"createTable"> = async (request, catalog, caller) => {
  // Java's client sends an empty map if no options are set.
  if (Object.keys(request.storage_options ?? {}).length > 0)
    throw new CatalogError("Unsupported", "storage_options: must be absent: this catalog writes with its own options");
  // An invalid policy must be rejected before rows are written.
  policyIn(request.properties ?? {});
  return inTurn(catalog, request, () => create(request, catalog, caller));
};

async function create(request: Request, catalog: Catalog, caller: AuthorizedCaller) {
  const { id, mode = "Create", properties } = request;
  const change = { contract, request, caller, properties };
  const present = await findTable(catalog.store.read, id);
  if (present === undefined) {
    const { transaction, ...made } = await makeTable(catalog, change, caller.body);
    return { ...transaction, ...made, properties: { ...properties } };
  }
  const isEmpty = await isUnwritten(catalog, present, request);
  if (!isEmpty && mode === "Create")
    throw new CatalogError("TableAlreadyExists", `table ${formatIdentifier(id)} already exists`);
  if (!isEmpty && mode === "ExistOk") return { location: present.location, properties: { ...present.properties } };
  const sent = { rows: caller.body, empty: isEmpty ? present : undefined };
  const { result, transaction } = await catalog.rows.change("write", change, { mode: "overwrite" }, sent);
  return {
    ...transaction,
    location: present.location,
    version: result.version,
    properties: { ...withProtectionOf(present, properties ?? present.properties) },
  };
}
