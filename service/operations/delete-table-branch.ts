import { contracts } from "@tiltyard/protocol";
import { carryOut, prepareAudit } from "../domain/audit.ts";
import { ownBranchOf } from "../domain/branch.ts";
import { deleteBranch, requireDeletable } from "../refs/branches.ts";
import { changeRefs } from "../refs/ref-files.ts";
import type { Handler } from "./handler.ts";

const contract = contracts.deleteTableBranch;

export const deleteTableBranch: Handler<typeof contract> = async (request, catalog, caller) => {
  const identifier = request.id;
  const name = ownBranchOf(request);
  const audit = prepareAudit({
    contract,
    request,
    caller,
    objects: [identifier],
    properties: { branch: name },
  });

  await changeRefs(catalog, identifier, async (table, lease) => {
    const branch = await requireDeletable(catalog, table, name);
    await carryOut(catalog.store, audit, () => deleteBranch(catalog, table, branch, lease));
  });
  return { transaction_id: audit.name };
};
