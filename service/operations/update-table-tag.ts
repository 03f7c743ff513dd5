import { CatalogError, contracts } from "@tiltyard/protocol";
import { contentsFor, requireTag, toText } from "../refs/tags.ts";
import { parseLocation } from "../storage/location.ts";
import { changeAuditedRefs } from "./change-audited-refs.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.updateTableTag;

export const updateTableTag: Handler<"updateTableTag"> = async (request, catalog, caller) => {
  const { tag } = request;
  return changeAuditedRefs({ contract, request, properties: { tag } }, catalog, caller, async (table) => {
    const { contents, key, revision } = await requireTag(catalog, table, tag);
    const text = toText({ ...contents, ...(await contentsFor(catalog, table, request)) });
    return async () => {
      const objects = await catalog.storage.at(parseLocation(table.location));
      if (!(await objects.replace(key, text, revision)))
        throw new CatalogError("ConcurrentModification", `tag: ${tag} was changed at the same time; try again`);
    };
  });
};
