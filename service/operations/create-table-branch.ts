import { contracts } from "@tiltyard/protocol";
import { branchOf, ownBranchOf } from "../domain/branch.ts";
import { requireFreeBranchName } from "../domain/branches.ts";
import { changeRefs } from "../domain/ref-files.ts";
import { requireBranch } from "../domain/require.ts";
import { requireVersion } from "../domain/versions.ts";
import type { Handler } from "./handler.ts";
import { transactionOf } from "./transaction-of.ts";

const contract = contracts.createTableBranch;

export const createTableBranch: Handler<typeof contract> = async (request, catalog, caller) => {
  const { id, delimiter } = request;
  const name = ownBranchOf(request);
  const branch = branchOf({ branch: request.from_branch });

  return changeRefs(catalog, id, async (table) => {
    await requireFreeBranchName(catalog, table, name);
    await requireBranch(catalog.store.read, table, branch);
    const { version } = await requireVersion(catalog, table, branch, request.from_version);
    await using dataset = await catalog.datasets.openForChange({
      contract,
      request: { id, delimiter, branch },
      caller,
    });
    await dataset.run(async (source) => {
      const branches = await source.branches();
      (await branches.create(name, branch, version)).close();
    });
    return transactionOf(dataset);
  });
};
