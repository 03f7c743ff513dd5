import { CatalogError, contracts } from "@tiltyard/protocol";
import { carryOut, prepareAudit } from "../domain/audit.ts";
import { changeRefs } from "../refs/ref-files.ts";
import { contentsFor, requireTag, toText } from "../refs/tags.ts";
import { parseLocation } from "../storage/location.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.updateTableTag;

export const updateTableTag: Handler<typeof contract> = async (request, catalog, caller) => {
  const { id: identifier, tag } = request;
  const audit = prepareAudit({
    contract,
    request,
    caller,
    objects: [identifier],
    properties: { tag },
  });

  await changeRefs(catalog, identifier, async (table) => {
    const { contents, key, revision } = await requireTag(catalog, table, tag);
    const text = toText({ ...contents, ...(await contentsFor(catalog, table, request)) });
    await carryOut(catalog.store, audit, async () => {
      const objects = await catalog.storage.at(parseLocation(table.location));
      if (!(await objects.replace(key, text, revision)))
        throw new CatalogError("ConcurrentModification", `tag: ${tag} was changed at the same time; try again`);
    });
  });
  return { transaction_id: audit.name };
};
