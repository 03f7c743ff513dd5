import { requireTable } from "../domain/require.ts";
import { requireTag, versionOfTag } from "../refs/tags.ts";
import type { Handler } from "./handler.ts";

export const getTableTagVersion: Handler<"getTableTagVersion"> = async (request, catalog) =>
  versionOfTag(await requireTag(catalog, await requireTable(catalog.store.read, request.id), request.tag));
