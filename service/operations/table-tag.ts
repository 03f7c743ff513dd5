import { CatalogError, formatIdentifier } from "@tiltyard/protocol";
import { requireTable } from "../domain/require.ts";
import { changeAuditedRefs, findRef, readRefs, refKey } from "../refs/ref-files.ts";
import { checkNewTag, contentsFor, requireTag, tagKind, toText, versionOfTag } from "../refs/tags.ts";
import type { Handler } from "./handler.ts";

export const listTableTags: Handler<"listTableTags"> = async (request, catalog) => {
  const { items, ...page } = await readRefs(catalog, request, tagKind);
  const tags = items.map((tag) => [tag.name, { ...versionOfTag(tag), manifestSize: tag.contents.manifestSize }]);
  return { tags: Object.fromEntries(tags), ...page };
};

export const getTableTagVersion: Handler<"getTableTagVersion"> = async (request, catalog) =>
  versionOfTag(await requireTag(catalog, await requireTable(catalog.store.read, request.id), request.tag));

export const createTableTag: Handler<"createTableTag"> = async (request, catalog, caller) => {
  const { id, tag } = request;
  checkNewTag(tag);
  const taken = new CatalogError(
    "TableTagAlreadyExists",
    `the tag ${JSON.stringify(tag)} of table ${formatIdentifier(id)} already exists`,
  );
  const change = { request, caller, properties: { tag } };
  return changeAuditedRefs(catalog, change, async (table) => {
    if ((await findRef(catalog, table, tagKind, tag)) !== undefined) throw taken;
    const { updatedAt, ...contents } = await contentsFor(catalog, table, request);
    const text = toText({ ...contents, createdAt: updatedAt, updatedAt, metadata: {} });
    return async () => {
      const objects = await catalog.storage.at(table.location);
      if (!(await objects.create(refKey(table, tagKind, tag), text))) throw taken;
    };
  });
};

export const updateTableTag: Handler<"updateTableTag"> = async (request, catalog, caller) => {
  const { tag } = request;
  const change = { request, caller, properties: { tag } };
  return changeAuditedRefs(catalog, change, async (table) => {
    const { contents, key, revision } = await requireTag(catalog, table, tag);
    const text = toText({ ...contents, ...(await contentsFor(catalog, table, request)) });
    return async () => {
      const objects = await catalog.storage.at(table.location);
      if (!(await objects.replace(key, text, revision)))
        throw new CatalogError("ConcurrentModification", `tag: ${tag} was changed concurrently. Retry the request`);
    };
  });
};

export const deleteTableTag: Handler<"deleteTableTag"> = async (request, catalog, caller) => {
  const { tag } = request;
  const change = { request, caller, properties: { tag } };
  return changeAuditedRefs(catalog, change, async (table) => {
    const { key } = await requireTag(catalog, table, tag);
    return async () => (await catalog.storage.at(table.location)).delete(key);
  });
};
