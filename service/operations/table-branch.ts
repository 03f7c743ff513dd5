import { openBranchOf, requireVersion } from "../commits/read.ts";
import { branchOf, ownBranchOf } from "../domain/require.ts";
import { branchKind, deleteRemains, prepareDeletion, requireFreeBranchName } from "../refs/branches.ts";
import { changeAuditedRefs, changeRefs, readRefs } from "../refs/ref-files.ts";
import type { Handler } from "./handler.ts";

export const listTableBranches: Handler<"listTableBranches"> = async (request, catalog) => {
  const { items, ...page } = await readRefs(catalog, request, branchKind);
  const branches = items.map(({ name, contents }) => {
    const { identifier: _, parentBranch, ...rest } = contents;
    return [name, { ...(typeof parentBranch === "string" && { parentBranch }), ...rest }];
  });
  return { branches: Object.fromEntries(branches), ...page };
};

export const createTableBranch: Handler<"createTableBranch"> = async (request, catalog, caller) => {
  const { id } = request;
  const name = ownBranchOf(request);
  const branch = branchOf({ branch: request.from_branch });

  return changeRefs(catalog, id, async (table, lease) => {
    const from = await openBranchOf(catalog, { table, branch });
    const { version, manifestName } = await requireVersion(catalog, from, request.from_version);
    await deleteRemains(catalog, table, name, {
      lease,
      isReadable: async () => (await from.objects.find(`${from.folder}/${manifestName}`)) !== undefined,
    });
    await requireFreeBranchName(catalog, table, name);
    const change = { request: { id, branch }, caller };
    return (await catalog.rows.change("createBranch", change, { name, from: branch, version })).transaction;
  });
};

export const deleteTableBranch: Handler<"deleteTableBranch"> = async (request, catalog, caller) => {
  const name = ownBranchOf(request);
  const change = { request, caller, properties: { branch: name } };
  return changeAuditedRefs(catalog, change, (table, lease) => prepareDeletion(catalog, table, name, lease));
};
