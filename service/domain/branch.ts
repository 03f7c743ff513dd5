import { CatalogError } from "@tiltyard/protocol";

/** The branch that every table has, and that a request means when it names none. */
export const mainBranch = "main";

const branchLengthMax = 256;
const valid = /^[\p{L}\p{N}._-]+(\/[\p{L}\p{N}._-]+)*$/u;

/**
 * The branch that a request means. Lance's own rules for names hold: a branch's name is a
 * path below the table's `tree` folder.
 *
 * @throws CatalogError InvalidInput for what cannot be the name of a branch.
 */
export function branchOf(request: { readonly branch?: string | undefined }): string {
  return request.branch === undefined ? mainBranch : checkBranch(request.branch, "branch");
}

/** @throws CatalogError InvalidInput for any other branch than main. */
export function requireMain(request: { readonly branch?: string | undefined }): void {
  if (branchOf(request) !== mainBranch) throw new CatalogError("InvalidInput", "branch: jobs work on main alone");
}

/**
 * The branch that is to be made or deleted, which `main` never is.
 *
 * @throws CatalogError InvalidInput
 */
export function ownBranchOf(request: { readonly name: string }): string {
  if (request.name === mainBranch)
    throw new CatalogError("InvalidInput", "name: the main branch is always there: name another one");
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
