import type { Handler } from "../operations/handler.ts";
import { listTableVersions } from "../operations/list-table-versions.ts";
import { readWhole } from "./whole-list.ts";

export const remoteListTableVersions: Handler<"remoteListTableVersions"> = async (request, catalog, caller) => {
  const pages = await readWhole((page_token) => listTableVersions({ ...request, page_token }, catalog, caller));
  return { versions: pages.flatMap(({ versions }) => versions) };
};
