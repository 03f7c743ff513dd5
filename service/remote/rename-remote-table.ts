import { renamed } from "@tiltyard/protocol";
import type { Handler } from "../operations/handler.ts";
import { renameTable } from "../operations/rename-table.ts";

export const remoteRenameTable: Handler<"remoteRenameTable"> = (request, catalog, caller) =>
  renameTable({ ...request, new_namespace_id: [...renamed(request).slice(0, -1)] }, catalog, caller);
