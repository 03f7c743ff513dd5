import { CatalogError, formatIdentifier, type Identifier, mainBranch } from "@tiltyard/protocol";
import { findAuditRecord } from "../store/audit.ts";
import { findBranch } from "../store/branches.ts";
import { findJob, type JobRecord } from "../store/jobs.ts";
import { findNamespace, type NamespaceRecord } from "../store/namespaces.ts";
import type { Session } from "../store/store.ts";
import { findTable, findTableById, type TableRecord } from "../store/tables.ts";

/** Returns an existing namespace. @throws CatalogError NamespaceNotFound */
export async function requireNamespace(session: Session, identifier: Identifier): Promise<NamespaceRecord> {
  const namespace = await findNamespace(session, identifier);
  if (namespace !== undefined) return namespace;
  throw new CatalogError("NamespaceNotFound", `namespace ${missing(identifier)}`);
}

/** Returns an existing table. @throws CatalogError TableNotFound; InvalidInput for the identifier of the root namespace. */
export async function requireTable(session: Session, identifier: Identifier): Promise<TableRecord> {
  const table = await findTable(session, requireTableIdentifier(identifier));
  if (table !== undefined) return table;
  throw tableNotFound(identifier);
}

/** Requires that a table was not dropped since it was read. @throws CatalogError TableNotFound */
export async function requireNotDropped(session: Session, { id, identifier }: Pick<TableRecord, "id" | "identifier">) {
  if ((await findTableById(session, id)) === undefined) throw tableNotFound(identifier);
}

export function tableNotFound(identifier: Identifier): CatalogError {
  return new CatalogError("TableNotFound", `table ${missing(identifier)}`);
}

/** Describes a missing object. Suggests the delimiter if the caller separated the parts of its identifier by dots. */
function missing(identifier: Identifier): string {
  const parts = identifier.flatMap((part) => part.split("."));
  const isDotted = parts.length > identifier.length && parts.every((part) => part !== "");
  const advice = isDotted ? `; did you mean ${formatIdentifier(parts)}?` : "";
  return `${formatIdentifier(identifier)} does not exist${advice}`;
}

/** Requires that a table can be created under a name. @throws CatalogError NamespaceNotFound, TableAlreadyExists */
export async function requireFreeName(session: Session, identifier: Identifier): Promise<void> {
  await requireNamespace(session, requireTableIdentifier(identifier).slice(0, -1));
  if ((await findTable(session, identifier)) !== undefined)
    throw new CatalogError("TableAlreadyExists", `table ${formatIdentifier(identifier)} already exists`);
}

/** Requires a branch with records; `openBranch` also adopts some. @throws CatalogError TableBranchNotFound */
export async function requireRecordedBranch(session: Session, table: TableRecord, branch: string): Promise<void> {
  if (branch === mainBranch || (await findBranch(session, { table, branch }))?.highestVersion !== undefined) return;
  throw branchNotFound(table, branch);
}

export function branchNotFound(table: TableRecord, branch: string): CatalogError {
  return new CatalogError(
    "TableBranchNotFound",
    `table ${formatIdentifier(table.identifier)} has no branch ${JSON.stringify(branch)}`,
  );
}

function requireTableIdentifier(identifier: Identifier): Identifier {
  if (identifier.length === 0) throw new CatalogError("InvalidInput", "id: names the root namespace, not a table");
  return identifier;
}

/** Returns an existing transaction. @throws CatalogError TransactionNotFound */
export async function requireTransaction(session: Session, identifier: Identifier) {
  const [id = "", namespace] = [identifier.at(-1), identifier.slice(0, -1)];
  const transaction = (await findJob(session, identifier)) ?? (await findAuditRecord(session, id, namespace));
  if (transaction !== undefined) return transaction;
  throw new CatalogError("TransactionNotFound", `no transaction or job has the id ${formatIdentifier(identifier)}`);
}

/** Returns a job. @throws CatalogError TransactionNotFound; ConcurrentModification for an audit record. */
export async function requireJob(session: Session, identifier: Identifier): Promise<JobRecord> {
  const job = await findJob(session, identifier);
  if (job !== undefined) return job;
  const { operation } = await requireTransaction(session, identifier);
  throw new CatalogError(
    "ConcurrentModification",
    `transaction ${formatIdentifier(identifier)} is an audit record (${operation}), which cannot be altered: only jobs can`,
  );
}

const branchLengthMax = 256;
const valid = /^[\p{L}\p{N}._-]+(\/[\p{L}\p{N}._-]+)*$/u;

/** Returns the branch of a request. @throws CatalogError InvalidInput for a name that Lance rejects. */
export function branchOf(request: { readonly branch?: string | undefined }): string {
  return request.branch === undefined ? mainBranch : checkBranch(request.branch, "branch");
}

/** Requires that the request refers to `main`. @throws CatalogError InvalidInput */
export function requireMain(request: { readonly branch?: string | undefined }): void {
  if (branchOf(request) !== mainBranch) throw new CatalogError("InvalidInput", "branch: jobs only change main");
}

/** Returns the branch to create or to delete, which cannot be `main`. @throws CatalogError InvalidInput */
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
