import { CatalogError } from "@tiltyard/protocol";

/** The branch of every table that requests without a branch refer to. */
export const mainBranch = "main";

const branchLengthMax = 256;
const valid = /^[\p{L}\p{N}._-]+(\/[\p{L}\p{N}._-]+)*$/u;

/**
 * Returns the branch of a request. The name must follow Lance's rules, because it is a path below the table's `tree`
 * folder.
 *
 * @throws CatalogError InvalidInput for an invalid name.
 */
export function branchOf(request: { readonly branch?: string | undefined }): string {
  return request.branch === undefined ? mainBranch : checkBranch(request.branch, "branch");
}

/** Requires that the request refers to `main`. @throws CatalogError InvalidInput */
export function requireMain(request: { readonly branch?: string | undefined }): void {
  if (branchOf(request) !== mainBranch) throw new CatalogError("InvalidInput", "branch: jobs only change main");
}

/**
 * Returns the branch to create or to delete, which cannot be `main`.
 *
 * @throws CatalogError InvalidInput
 */
export function ownBranchOf(request: { readonly name: string }): string {
  if (request.name === mainBranch)
    throw new CatalogError("InvalidInput", "name: the main branch always exists: use another name");
  return checkBranch(request.name, "name");
}

function checkBranch(branch: string, field: string): string {
  if (branch.length > branchLengthMax || !valid.test(branch) || branch.includes("..") || branch.endsWith(".lock"))
    throw new CatalogError(
      "InvalidInput",
      `${field}: ${JSON.stringify(branch.slice(0, branchLengthMax))} is not a branch name`,
    );
  return branch;
}
