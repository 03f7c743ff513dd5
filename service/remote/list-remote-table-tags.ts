import type { Handler } from "../operations/handler.ts";
import { listTableTags } from "../operations/list-table-tags.ts";
import { readWhole } from "./whole-list.ts";

export const remoteListTableTags: Handler<"remoteListTableTags"> = async (request, catalog, caller) => {
  const pages = await readWhole((page_token) => listTableTags({ ...request, page_token }, catalog, caller));
  return Object.assign({}, ...pages.map(({ tags }) => tags));
};
