import { contracts } from "@tiltyard/protocol";
import { requireTag } from "../refs/tags.ts";
import { parseLocation } from "../storage/location.ts";
import { changeAuditedRefs } from "./change-audited-refs.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.deleteTableTag;

export const deleteTableTag: Handler<"deleteTableTag"> = async (request, catalog, caller) => {
  const { tag } = request;
  return changeAuditedRefs({ contract, request, properties: { tag } }, catalog, caller, async (table) => {
    const { key } = await requireTag(catalog, table, tag);
    return async () => (await catalog.storage.at(parseLocation(table.location))).delete(key);
  });
};
