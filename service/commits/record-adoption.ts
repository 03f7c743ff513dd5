import { type Identifier, mainBranch } from "@tiltyard/protocol";
import { automationOf } from "../domain/policy.ts";
import { requireNotDropped } from "../domain/require.ts";
import { type Origin, originOf, prepareAudit, recordAudit, unknownOrigin } from "../domain/transaction.ts";
import { principalOfJob } from "../jobs/job.ts";
import { type BranchKey, emptyBranch, findBranch, raiseBranch } from "../store/branches.ts";
import { findOpenJobs } from "../store/jobs.ts";
import type { Session, Store } from "../store/store.ts";
import type { TableRecord } from "../store/tables.ts";
import { deleteTask, holdTask, insertTask, noteTask } from "../store/tasks.ts";
import { insertVersions, latestVersion, listVersions, type VersionRecord } from "../store/versions.ts";
import type { CommitDeps } from "./deps.ts";
import { type BranchFiles, type FoundManifest, filesOf, type LocatedTable } from "./discover.ts";

const adoptedAtOnce = 500;

/** Returns the task that adopts the older versions of a branch. */
export function adoptionOf({ table, branch }: BranchKey) {
  return { kind: "adopt", subject: JSON.stringify([table.id, branch]) } as const;
}

/** Adopts versions that follow the highest one of a branch, unless another writer has recorded some meanwhile. */
export async function adoptNext(store: Store, files: BranchFiles, found: readonly FoundManifest[]): Promise<void> {
  for (let from = 0; from < found.length; from += adoptedAtOnce) {
    const part = found.slice(from, from + adoptedAtOnce);
    const highest = (part[0]?.version ?? 0) - 1;
    await store.write((session) => insertFound(session, files, part, highest));
  }
}

/** Adopts a branch without records, the latest versions first. A task adopts the versions beyond `most`. */
export async function adoptBranch(
  store: Store,
  files: BranchFiles,
  found: readonly FoundManifest[],
  most = Number.POSITIVE_INFINITY,
): Promise<void> {
  const sorted = found.toSorted((a, b) => a.version - b.version);
  const latest = sorted.slice(-adoptedAtOnce);
  const isAll = latest.length === sorted.length;
  const isFirst = await store.write(async (session) => {
    if (!(await insertFound(session, files, latest, undefined, sorted[0]?.version))) return false;
    if (!isAll) await insertTask(session, adoptionOf(files));
    return true;
  });
  if (!isFirst || isAll) return;
  const state = await findBranch(store.read, files);
  await adoptBelow(store, { ...files, state }, sorted, most);
}

/** Adopts versions of a branch below those that have records, the latest first. Several processes may do so at once. */
export async function adoptBelow(
  store: Store,
  files: BranchFiles,
  found: readonly FoundManifest[],
  most = Number.POSITIVE_INFINITY,
): Promise<void> {
  const task = adoptionOf(files);
  const latestFirst = found.toSorted((a, b) => b.version - a.version);
  let from = 0;
  const adoptSome = async (session: Session): Promise<boolean> => {
    // The deletion of the branch's versions also deletes the task, because deleted versions must not reappear.
    const now = await findBranch(session, files);
    if (now === undefined || now.generation !== files.state?.generation || !(await holdTask(session, task)))
      return false;
    const [lowest] = await listVersions(session, files, { after: undefined, limit: 1, descending: false });
    while (lowest !== undefined && (latestFirst[from]?.version ?? -1) >= lowest.version) from += 1;
    const part = latestFirst.slice(from, from + adoptedAtOnce);
    if (part.length > 0) await insertRecords(session, files, now.generation, part);
    const isMore = from + part.length < latestFirst.length;
    if (!isMore) await deleteTask(session, task);
    return isMore;
  };
  while (from < most && (await store.write(adoptSome))) from += adoptedAtOnce;
}

/** Inserts records. @returns False if the branch has changed. @throws CatalogError TableNotFound */
async function insertFound(
  session: Session,
  files: BranchFiles,
  found: readonly FoundManifest[],
  expectedHighest: number | undefined,
  lowest = found[0]?.version,
): Promise<boolean> {
  const highest = found.at(-1)?.version;
  if (highest === undefined || lowest === undefined) return false;
  const { table, branch, state } = files;
  // The table may have been deregistered or purged during the listing of its folder.
  await requireNotDropped(session, table);
  const now = await findBranch(session, files);
  // The rollback of a batch also removes manifests.
  const isAsSeen = now?.generation === state?.generation && now?.withdrawals === state?.withdrawals;
  if (!isAsSeen || now?.highestVersion !== expectedHighest) return false;
  const { generation = 1 } = now ?? {};
  await raiseBranch(session, { tableId: table.id, name: branch, generation, lowest, highest });
  await insertRecords(session, files, generation, found);
  // Adopted versions may have columns that the catalog does not know.
  if (branch === mainBranch) await noteTask(session, automationOf(table.id));
  return true;
}

async function insertRecords(
  session: Session,
  files: BranchFiles,
  generation: number,
  found: readonly FoundManifest[],
): Promise<void> {
  const transactionId = files.transactionId ?? (await auditAdoption(session, files, found));
  const records = found.map(
    ({ version, name, object }): VersionRecord => ({
      tableId: files.table.id,
      branch: files.branch,
      generation,
      version,
      manifestName: name,
      committedName: name,
      identity: object.identity,
      state: "finished",
      manifestSize: object.sizeBytes,
      eTag: undefined,
      metadata: undefined,
      lanceOperation: undefined,
      rowCount: undefined,
      timestampMillis: Math.round(object.modifiedAtMillis),
      transactionId,
    }),
  );
  await insertVersions(session, records);
}

/** Records an adoption in the audit. @returns The id of the transaction. */
async function auditAdoption(session: Session, { table, branch }: BranchFiles, found: readonly FoundManifest[]) {
  const versions = found.map(({ version }) => version);
  const [first, last] = [Math.min(...versions), Math.max(...versions)];
  const properties = { branch, version: String(first), ...(last !== first && { last_version: String(last) }) };
  const caller = { ...(await writerOf(session, table, branch)), operation: "AdoptTableVersion" };
  const audit = prepareAudit({ caller, objects: [table.identifier], properties });
  await audit.record(session);
  return audit.id;
}

/** Geneva commits without the catalog, to main. */
const genevaOperations = ["AlterTableBackfillColumns", "RefreshMaterializedView"];

/** Returns the running job of Geneva on a table. If several jobs are running, the writer is unknown. */
async function writerOf(session: Session, { id }: LocatedTable, branch: string): Promise<Origin> {
  const open = branch === mainBranch ? await findOpenJobs(session, id) : [];
  const running = open.filter(({ status, operation }) => status === "Running" && genevaOperations.includes(operation));
  const [job] = running;
  if (job === undefined || running.length > 1) return unknownOrigin;
  return { ...originOf({ name: principalOfJob(job), grants: [] }), requestId: job.requestId };
}

/**
 * Deletes the records of a branch that a client deleted. Lance's clients delete the folder of a branch without the
 * catalog and may create a branch of the same name again. The caller has found the staged manifest of a commit, so the
 * object store is readable, and a missing latest manifest proves that the folder was deleted.
 *
 * @param latest The latest version of the branch, which was placed.
 * @returns Whether the branch is a different one now.
 */
export async function forgetDeletedBranch({ store, storage }: CommitDeps, table: TableRecord, latest: VersionRecord) {
  const { branch } = latest;
  if (branch === mainBranch) return false;
  const { objects, folder } = await filesOf(storage, { table, branch });
  if ((await objects.find(`${folder}/${latest.manifestName}`)) !== undefined) return false;

  await store.write(async (session) => {
    const still = await latestVersion(session, { table, branch });
    if (still?.transactionId !== latest.transactionId) return;
    await emptyBranch(session, { table, branch });
    await recordAudit(session, { ...byItself("ForgetTableBranch", table), properties: { branch } });
  });
  return true;
}

/** Returns the audited parts of a change that the catalog detects itself. */
export function byItself(operation: string, table: { readonly identifier: Identifier }) {
  return { caller: { ...unknownOrigin, operation }, objects: [table.identifier] };
}
