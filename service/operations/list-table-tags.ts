import { keyText, readPage } from "../domain/page.ts";
import { requireTable } from "../domain/require.ts";
import { listRefs } from "../refs/ref-files.ts";
import { tagKind, versionOfTag } from "../refs/tags.ts";
import type { Handler } from "./handler.ts";

export const listTableTags: Handler<"listTableTags"> = async (request, catalog) => {
  const table = await requireTable(catalog.store.read, request.id);
  const { items, ...page } = await readPage(
    { name: "tags", key: keyText },
    request,
    (after, limit) => listRefs(catalog, table, tagKind, after, limit),
    (tag) => tag.name,
  );
  const tags = items.map((tag) => [tag.name, { ...versionOfTag(tag), manifestSize: tag.contents.manifestSize }]);
  return { tags: Object.fromEntries(tags), ...page };
};
