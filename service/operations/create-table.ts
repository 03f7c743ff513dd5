import { CatalogError, contracts, formatIdentifier } from "@tiltyard/protocol";
import { isWritten } from "../commits/read.ts";
import { policyIn } from "../domain/policy.ts";
import { withProtectionOf } from "../domain/protection.ts";
import { makeTable } from "../rows/make-table.ts";
import { findTable } from "../store/tables.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.createTable;

/**
 * Creates a table together with its rows. Overwriting a table creates a new version of it, so that its former rows can
 * be restored.
 */
export const createTable: Handler<typeof contract> = async (request, catalog, caller) => {
  const { store, rows } = catalog;
  const { id, mode = "Create", properties } = request;
  // Java's client sends an empty map if no options are set.
  if (Object.keys(request.storage_options ?? {}).length > 0)
    throw new CatalogError("Unsupported", "storage_options: this catalog writes with its own; leave them out");
  // An invalid policy must be rejected before rows are written.
  policyIn(properties ?? {});
  const present = await findTable(store.read, id);
  if (present !== undefined && mode === "Create")
    throw new CatalogError("TableAlreadyExists", `table ${formatIdentifier(id)} already exists`);
  if (present !== undefined && mode === "ExistOk")
    return { location: present.location, properties: { ...present.properties } };

  const change = { contract, request, caller, properties };
  if (present !== undefined) {
    const isEmpty = !(await isWritten(catalog, present));
    const sent = { rows: caller.body, empty: isEmpty ? present : undefined };
    const { result, transaction } = await rows.change("write", change, { mode: "overwrite" }, sent);
    return {
      ...transaction,
      location: present.location,
      version: result.version,
      properties: { ...withProtectionOf(present, properties ?? present.properties) },
    };
  }

  const { transaction, ...made } = await makeTable(catalog, change, caller.body);
  return { ...transaction, ...made, properties: { ...properties } };
};
