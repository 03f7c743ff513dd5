import type { contracts } from "@tiltyard/protocol";
import { branchOf } from "../domain/branch.ts";
import { adoptExternalCommits } from "../domain/external-commits.ts";
import { readPage } from "../domain/page.ts";
import { requireBranch, requireTable } from "../domain/require.ts";
import { readFinished, toTableVersion } from "../domain/versions.ts";
import { listVersions } from "../store/versions.ts";
import type { Handler } from "./handler.ts";

export const listTableVersions: Handler<typeof contracts.listTableVersions> = async (request, catalog) => {
  const { store } = catalog;
  const branch = branchOf(request);
  const table = await requireTable(store.read, request.id);
  await requireBranch(store.read, table, branch);
  if (!request.page_token) await adoptExternalCommits(catalog, table, branch);
  const descending = request.descending ?? false;
  const { items, ...page } = await readPage(
    `versions ${branch} ${descending ? "descending" : "ascending"}`,
    request,
    (cursor, limit) => {
      const after = cursor === undefined ? undefined : Number(cursor[0]);
      const read = () => listVersions(store.read, table.id, branch, { after, limit, descending });
      return readFinished(catalog, table.location, read);
    },
    (record) => [record.version],
  );
  return { versions: items.map((record) => toTableVersion(table.location, record)), ...page };
};
