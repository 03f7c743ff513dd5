import { keyText, readPage } from "../domain/page.ts";
import { requireTable } from "../domain/require.ts";
import { branchKind } from "../refs/branches.ts";
import { listRefs } from "../refs/ref-files.ts";
import type { Handler } from "./handler.ts";

export const listTableBranches: Handler<"listTableBranches"> = async (request, catalog) => {
  const table = await requireTable(catalog.store.read, request.id);
  const { items, ...page } = await readPage(
    { name: "branches", key: keyText },
    request,
    (after, limit) => listRefs(catalog, table, branchKind, after, limit),
    (branch) => branch.name,
  );
  const branches = items.map(({ name, contents }) => {
    const { identifier: _, parentBranch, ...rest } = contents;
    return [name, { ...(typeof parentBranch === "string" && { parentBranch }), ...rest }];
  });
  return { branches: Object.fromEntries(branches), ...page };
};
