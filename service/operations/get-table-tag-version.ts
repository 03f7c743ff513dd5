import type { contracts } from "@tiltyard/protocol";
import { requireTable } from "../domain/require.ts";
import { requireTag, versionOfTag } from "../refs/tags.ts";
import type { Handler } from "./handler.ts";

export const getTableTagVersion: Handler<typeof contracts.getTableTagVersion> = async (request, catalog) =>
  versionOfTag(await requireTag(catalog, await requireTable(catalog.store.read, request.id), request.tag));
