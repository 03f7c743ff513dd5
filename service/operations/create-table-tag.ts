import { CatalogError, contracts, formatIdentifier } from "@tiltyard/protocol";
import { findRef, refKey } from "../refs/ref-files.ts";
import { checkNewTag, contentsFor, tagKind, toText } from "../refs/tags.ts";
import { parseLocation } from "../storage/location.ts";
import { changeAuditedRefs } from "./change-audited-refs.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.createTableTag;

export const createTableTag: Handler<"createTableTag"> = async (request, catalog, caller) => {
  const { id, tag } = request;
  checkNewTag(tag);
  const taken = new CatalogError(
    "TableTagAlreadyExists",
    `table ${formatIdentifier(id)} has a tag ${JSON.stringify(tag)} already`,
  );
  return changeAuditedRefs({ contract, request, properties: { tag } }, catalog, caller, async (table) => {
    if ((await findRef(catalog, table, tagKind, tag)) !== undefined) throw taken;
    const { updatedAt, ...contents } = await contentsFor(catalog, table, request);
    const text = toText({ ...contents, createdAt: updatedAt, updatedAt, metadata: {} });
    return async () => {
      const objects = await catalog.storage.at(parseLocation(table.location));
      if (!(await objects.create(refKey(table, tagKind, tag), text))) throw taken;
    };
  });
};
