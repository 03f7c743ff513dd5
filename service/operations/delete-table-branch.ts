import { contracts } from "@tiltyard/protocol";
import { ownBranchOf } from "../domain/branch.ts";
import { deleteBranch, requireDeletable } from "../refs/branches.ts";
import { changeAuditedRefs } from "./change-audited-refs.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.deleteTableBranch;

export const deleteTableBranch: Handler<"deleteTableBranch"> = async (request, catalog, caller) => {
  const name = ownBranchOf(request);
  const properties = { branch: name };
  return changeAuditedRefs({ contract, request, properties }, catalog, caller, async (table, lease) => {
    const branch = await requireDeletable(catalog, table, name);
    return () => deleteBranch(catalog, table, branch, lease);
  });
};
