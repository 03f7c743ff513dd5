import { CatalogError, formatIdentifier, requireClient, type TableVersion } from "@tiltyard/protocol";
import { applyPolicy } from "../domain/policy.ts";
import { branchOf, requireTable } from "../domain/require.ts";
import { prepareAudit, type TableChange } from "../domain/transaction.ts";
import { MetadataTooLargeError } from "../lance/metadata-limit.ts";
import type { Location } from "../storage/location.ts";
import type { Storage } from "../storage/storage.ts";
import { findBranch } from "../store/branches.ts";
import { CommitInDoubtError, type Session } from "../store/store.ts";
import {
  type NewTable as NamedTable,
  setTableProperties,
  type TableRecord,
  withProtectionOf,
} from "../store/tables.ts";
import { type LocatedVersion, latestVersion, type VersionRecord } from "../store/versions.ts";
import { recordTable } from "../tables/new-table.ts";
import { commitTogether } from "./commit.ts";
import type { CommitDeps } from "./deps.ts";
import { VersionInDoubtError } from "./finish.ts";
import { type PreparedVersion, prepareVersion, type VersionRequest } from "./prepare.ts";
import { toTableVersion } from "./read.ts";
import { recordVersion } from "./record.ts";

export interface BranchChange extends TableChange {
  readonly request: TableChange["request"] & { readonly branch?: string | undefined };
  /** The properties of the table from the first commit on. If undefined, they do not change. */
  readonly properties?: Readonly<Record<string, string>> | undefined;
  /** The maximum number of bytes of the metadata of the schema and its fields; undefined without a limit. */
  readonly metadataBytesMax?: number | undefined;
  readonly alongside?: (session: Session, table: TableRecord) => Promise<void>;
}

export type NewTable = Omit<NamedTable, "identifier">;

export type Commits = ReturnType<typeof createCommits>;

/** A conflict that no retry of the commit resolves, because the versions that the change began with were replaced. */
export class OutdatedChangeError extends CatalogError {
  constructor(problem: string) {
    super("ConcurrentModification", `${problem}. Retry the request`);
  }
}

/**
 * Creates the commits of one operation, sequential or all at once.
 *
 * @param table The table at the start of the operation. A NewTable is created with the first commit.
 * @param latest The version of the branch that the change follows; undefined for a table without versions.
 */
export function createCommits(
  deps: CommitDeps,
  change: BranchChange,
  table: TableRecord | NewTable,
  latest?: VersionRecord,
) {
  const { storage } = deps;
  const identifier = change.request.id;
  const prepare = async (request: VersionRequest) => {
    try {
      return await prepareVersion(deps, current, request, change.caller, change.metadataBytesMax);
    } catch (error) {
      // The library keeps the manifest of a commit whose rejection is no conflict.
      if (error instanceof MetadataTooLargeError)
        await (await storage.at(current.location)).delete(request.manifest_path);
      throw error;
    }
  };
  const held: { readonly prepared: PreparedVersion; readonly answer: TableVersion }[] = [];
  let current = table;
  let holds = false;
  let transactionName: string | undefined;
  let nameInDoubt: string | undefined;

  async function write(prepared: readonly PreparedVersion[]): Promise<TableVersion[]> {
    const { caller, properties } = change;
    // The client may have repeated the request meanwhile.
    requireClient(caller.signal);
    const audit = prepareAudit({ caller, objects: [identifier] });
    // Several versions of an existing table are committed together. A new table has no other writers.
    const entries =
      prepared.length > 1 && "id" in current ? prepared.map((each) => ({ identifier, prepared: each })) : [];
    let present: TableRecord | undefined;
    const apply = async (session: Session): Promise<LocatedVersion[]> => {
      const table =
        "id" in current
          ? await requireSame(session, current)
          : await recordTable(session, { identifier, ...current }, change.caller);
      present = table;
      // The next commit may be the first version of an existing table.
      const followsNothing = "id" in current && latest === undefined && transactionName === undefined;
      const first = followsNothing
        ? await latestVersion(session, { table, branch: branchOf(change.request) })
        : undefined;
      const records = [];
      for (const each of entries.length > 0 ? [] : prepared)
        records.push(await recordVersion(session, table, each, audit.id));
      // The first attempt of a retried commit already has an audit record.
      const isNew = entries.length > 0 || records.some((record) => record.transactionId === audit.id);
      // The library would replace the rows of a writer that was faster.
      if (isNew && first !== undefined && first.transactionId !== audit.id)
        throw new OutdatedChangeError(`table ${formatIdentifier(identifier)} was written concurrently`);
      // A new table was recorded with its properties and, possibly, those of the catalog.
      if (properties !== undefined && "id" in current) await replaceProperties(session, table, properties);
      if (transactionName === undefined) await change.alongside?.(session, table);
      if (isNew) await audit.record(session);
      return records.map((record) => ({ location: table.location, record }));
    };
    const locking = "id" in current ? undefined : "tables";
    const committed = await commitTogether(deps, { audit, entries, apply, locking }).catch((error: unknown) => {
      if (error instanceof VersionInDoubtError) transactionName = audit.name;
      if (error instanceof CommitInDoubtError) nameInDoubt = audit.name;
      throw error;
    });
    if (present !== undefined) current = present;
    const versions = [...committed.entries, ...committed.applied];
    transactionName = audit.nameOf(versions[0]?.record.transactionId ?? audit.id);
    return versions.map(toTableVersion);
  }

  async function requireSame(session: Session, opened: TableRecord): Promise<TableRecord> {
    const now = await requireTable(session, identifier);
    const name = formatIdentifier(identifier);
    if (now.id !== opened.id) throw new OutdatedChangeError(`table ${name} was replaced concurrently`);
    if (latest === undefined) return now;
    const { branch, generation } = latest;
    // The version would be the first one of an empty branch, and its older files are missing.
    if ((await findBranch(session, { table: now, branch }))?.generation !== generation)
      throw new OutdatedChangeError(`all versions on branch ${branch} of table ${name} were deleted concurrently`);
    return now;
  }

  async function replaceProperties(session: Session, table: TableRecord, given: TableRecord["properties"]) {
    const properties = withProtectionOf(table, given);
    await setTableProperties(session, table.id, properties);
    await applyPolicy(session, { ...table, properties }, change.caller);
  }

  return {
    /** Holds back further versions until `publish`. */
    hold: () => {
      holds = true;
    },
    get held(): readonly TableVersion[] {
      return held.map(({ answer }) => answer);
    },
    commit: async (request: VersionRequest) => {
      if (holds) {
        const manifest_path = await moveAside(storage, table.location, request.manifest_path);
        const prepared = await prepare({ ...request, manifest_path });
        const { version, manifest_size, e_tag } = request;
        const answer = { version, manifest_path, manifest_size, e_tag };
        held.push({ prepared, answer });
        return { version: answer };
      }
      const [version] = await write([await prepare(request)]);
      if (version === undefined) throw new Error("a commit has a version");
      return { ...(transactionName !== undefined && { transaction_id: transactionName }), version };
    },
    /** Commits the held-back versions. @throws CatalogError ConcurrentModification after another commit. */
    publish: async () => {
      try {
        await write(held.map(({ prepared }) => prepared));
      } catch (error) {
        // A version in doubt may be recorded, and is finished with its manifest.
        if (!(error instanceof CatalogError) || error.kind === "ServiceUnavailable") held.length = 0;
        throw error;
      }
      held.length = 0;
    },
    /** Deletes the manifests of the held-back versions, except those whose publication is in doubt. */
    discard: async () => {
      const objects = await storage.at(table.location);
      for (const { manifest_path } of held.splice(0).map(({ answer }) => answer)) await objects.delete(manifest_path);
    },
    /** The name of the last transaction that was committed or may be; undefined before the first commit. */
    get transactionName() {
      return transactionName ?? nameInDoubt;
    },
  };
}

/** Moves a staged manifest, because a client that gets its own name back would place it, which publishes it. */
async function moveAside(storage: Storage, location: Location, staged: string): Promise<string> {
  const aside = `${staged}-held`;
  const objects = await storage.at(location);
  if ((await objects.copy(staged, aside)).outcome === "missing")
    throw new CatalogError("InvalidInput", `manifest_path: no object exists at ${staged}`);
  await objects.delete(staged);
  return aside;
}
