import { contracts } from "@tiltyard/protocol";
import { carryOut, prepareAudit } from "../domain/audit.ts";
import { changeRefs } from "../refs/ref-files.ts";
import { requireTag } from "../refs/tags.ts";
import { parseLocation } from "../storage/location.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.deleteTableTag;

export const deleteTableTag: Handler<typeof contract> = async (request, catalog, caller) => {
  const { id: identifier, tag } = request;
  const audit = prepareAudit({
    contract,
    request,
    caller,
    objects: [identifier],
    properties: { tag },
  });

  await changeRefs(catalog, identifier, async (table) => {
    const { key } = await requireTag(catalog, table, tag);
    await carryOut(catalog.store, audit, async () => {
      await (await catalog.storage.at(parseLocation(table.location))).delete(key);
    });
  });
  return { transaction_id: audit.name };
};
