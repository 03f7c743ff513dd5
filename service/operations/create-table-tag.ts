import { CatalogError, contracts, formatIdentifier } from "@tiltyard/protocol";
import { carryOut, prepareAudit } from "../domain/audit.ts";
import { changeRefs, findRef, refKey } from "../refs/ref-files.ts";
import { checkNewTag, contentsFor, tagKind, toText } from "../refs/tags.ts";
import { parseLocation } from "../storage/location.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.createTableTag;

export const createTableTag: Handler<typeof contract> = async (request, catalog, caller) => {
  const { id: identifier, tag } = request;
  checkNewTag(tag);
  const audit = prepareAudit({
    contract,
    request,
    caller,
    objects: [identifier],
    properties: { tag },
  });
  const taken = new CatalogError(
    "TableTagAlreadyExists",
    `table ${formatIdentifier(identifier)} has a tag ${JSON.stringify(tag)} already`,
  );

  await changeRefs(catalog, identifier, async (table) => {
    if ((await findRef(catalog, table, tagKind, tag)) !== undefined) throw taken;
    const { updatedAt, ...contents } = await contentsFor(catalog, table, request);
    const text = toText({ ...contents, createdAt: updatedAt, updatedAt, metadata: {} });
    await carryOut(catalog.store, audit, async () => {
      const objects = await catalog.storage.at(parseLocation(table.location));
      if (!(await objects.create(refKey(table, tagKind, tag), text))) throw taken;
    });
  });
  return { transaction_id: audit.name };
};
