import { contracts } from "@tiltyard/protocol";
import { requireBranch, requireVersion } from "../commits/read.ts";
import { branchOf, ownBranchOf } from "../domain/branch.ts";
import { requireFreeBranchName } from "../refs/branches.ts";
import { changeRefs } from "../refs/ref-files.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.createTableBranch;

export const createTableBranch: Handler<"createTableBranch"> = async (request, catalog, caller) => {
  const { id, delimiter } = request;
  const name = ownBranchOf(request);
  const branch = branchOf({ branch: request.from_branch });

  return changeRefs(catalog, id, async (table) => {
    await requireFreeBranchName(catalog, table, name);
    await requireBranch(catalog, table, branch);
    const { version } = await requireVersion(catalog, table, branch, request.from_version);
    const change = { contract, request: { id, delimiter, branch }, caller };
    return (await catalog.rows.change("createBranch", change, { name, from: branch, version })).transaction;
  });
};
