import type { contracts } from "@tiltyard/protocol";
import { branchOf } from "../domain/branch.ts";
import { readPage } from "../domain/page.ts";
import { requireBranch, requireTable } from "../domain/require.ts";
import { toTableVersion } from "../domain/versions.ts";
import { listVersions } from "../store/versions.ts";
import type { Handler } from "./handler.ts";

export const listTableVersions: Handler<typeof contracts.listTableVersions> = async (request, { store, finisher }) => {
  const branch = branchOf(request);
  const table = await requireTable(store.read, request.id);
  await requireBranch(store.read, table, branch);
  const descending = request.descending ?? false;
  const { items, ...page } = await readPage(
    `versions ${branch} ${descending ? "descending" : "ascending"}`,
    request,
    (cursor, limit) =>
      listVersions(store.read, table.id, branch, {
        after: cursor === undefined ? undefined : Number(cursor[0]),
        limit,
        descending,
      }),
    (record) => [record.version],
  );
  const records = await Promise.all(items.map((record) => finisher.finishVersion(table.location, record)));
  return { versions: records.map((record) => toTableVersion(table.location, record)), ...page };
};
