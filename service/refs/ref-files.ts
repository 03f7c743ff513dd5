import { CatalogError, type Identifier } from "@tiltyard/protocol";
import type { z } from "zod";
import type { StoreDeps } from "../commits/deps.ts";
import { keyText, type PageRequest, readPage } from "../domain/page.ts";
import { requireTable } from "../domain/require.ts";
import { carryOut, prepareAudit, type TableChange } from "../domain/transaction.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import type { TableRecord } from "../store/tables.ts";
import { exclusively, type Lease } from "../tasks/lease.ts";

const readAtOnce = 32;

/** A kind of named references to versions. Lance keeps each reference in a JSON file of the table. */
export interface RefKind<Contents> {
  readonly folder: "_refs/tags" | "_refs/branches";
  readonly contents: z.ZodType<Contents>;
}

interface RefFile {
  readonly name: string;
  readonly key: string;
}

export interface Ref<Contents> extends RefFile {
  readonly contents: Contents;
  /** The state of the file, for `replace`. */
  readonly revision: string;
}

/** Returns the key of the file of a ref. Lance encodes slashes in the names of branches. */
export function refKey(table: TableRecord, kind: RefKind<unknown>, name: string): string {
  return `${folderOf(table, kind)}/${encodeURIComponent(name)}.json`;
}

function folderOf(table: TableRecord, { folder }: RefKind<unknown>): string {
  return `${table.location.path}/${folder}`;
}

export async function findRef<Contents>(
  { storage }: Pick<StoreDeps, "storage">,
  table: TableRecord,
  kind: RefKind<Contents>,
  name: string,
): Promise<Ref<Contents> | undefined> {
  const objects = await storage.at(table.location);
  return readRef(objects, kind, { name, key: refKey(table, kind, name) });
}

/** Lists the refs of a table whose names follow `after`, in the order of their names. */
export async function listRefs<Contents>(
  { storage }: Pick<StoreDeps, "storage">,
  table: TableRecord,
  kind: RefKind<Contents>,
  after = "",
  limit = Number.POSITIVE_INFINITY,
): Promise<Ref<Contents>[]> {
  const objects = await storage.at(table.location);
  const files = (await listFiles(objects, folderOf(table, kind))).filter(({ name }) => name > after);
  const found: Ref<Contents>[] = [];
  for (let from = 0; from < files.length && found.length < limit; from += readAtOnce) {
    const batch = files.slice(from, from + readAtOnce);
    // Files that are deleted during the listing are skipped.
    const read = await Promise.all(batch.map((file) => readRef(objects, kind, file)));
    found.push(...read.filter((ref) => ref !== undefined));
  }
  return found.slice(0, limit);
}

/** Reads a page of the refs of a table. */
export async function readRefs<Contents>(
  deps: StoreDeps,
  request: PageRequest & { readonly id: Identifier },
  kind: RefKind<Contents>,
) {
  const table = await requireTable(deps.store.read, request.id);
  const read = (after: string | undefined, limit: number) => listRefs(deps, table, kind, after, limit);
  return readPage({ name: kind.folder, key: keyText }, request, read, ({ name }) => name);
}

export async function listRefNames(
  { storage }: Pick<StoreDeps, "storage">,
  table: TableRecord,
  kind: RefKind<unknown>,
): Promise<readonly string[]> {
  const files = await listFiles(await storage.at(table.location), folderOf(table, kind));
  return files.map(({ name }) => name);
}

/**
 * Changes the refs of a table. Only one process of the database changes them at a time, but Lance's clients can change
 * refs concurrently.
 *
 * @throws CatalogError TableNotFound, ConcurrentModification, ServiceUnavailable
 */
export async function changeRefs<Result>(
  { store }: Pick<StoreDeps, "store">,
  identifier: Identifier,
  work: (table: TableRecord, lease: Lease) => Promise<Result>,
): Promise<Result> {
  const { location } = await requireTable(store.read, identifier);
  return exclusively(store, `refs ${location.uri}`, async (lease) => {
    const table = await requireTable(store.read, identifier);
    if (table.location.uri !== location.uri)
      throw new CatalogError("ConcurrentModification", "the table was replaced concurrently. Retry the request");
    return work(table, lease);
  });
}

/**
 * Changes a tag or a branch of a table, one change at a time, and records the change in the audit.
 *
 * @param change The change, with the name of the tag or branch as a property.
 * @param prepare Validates the change and returns it. A rejected request is not recorded in the audit.
 * @returns The common response of these operations.
 */
export async function changeAuditedRefs(
  deps: Pick<StoreDeps, "store">,
  change: TableChange,
  prepare: (table: TableRecord, lease: Lease) => Promise<() => Promise<void>>,
): Promise<{ transaction_id: string }> {
  const audit = prepareAudit({ ...change, objects: [change.request.id] });
  await changeRefs(deps, change.request.id, async (table, lease) => {
    const work = await prepare(table, lease);
    await carryOut(deps.store, audit, async () => {
      lease.requireValid();
      await work();
    });
  });
  return { transaction_id: audit.name };
}

async function listFiles(objects: ObjectStore, folder: string): Promise<RefFile[]> {
  const files: RefFile[] = [];
  for await (const { key } of objects.list(folder)) {
    const name = nameOf(key.slice(folder.length + 1));
    if (name !== undefined) files.push({ name, key });
  }
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Decodes the name of a ref. Like Lance, it accepts encoded slashes and plain ones, which may be folders. */
function nameOf(file: string): string | undefined {
  if (!file.endsWith(".json")) return undefined;
  try {
    return decodeURIComponent(file.slice(0, -".json".length));
  } catch {
    return undefined;
  }
}

async function readRef<Contents>(objects: ObjectStore, kind: RefKind<Contents>, { name, key }: RefFile) {
  const read = await objects.read(key);
  return (
    read && { name, key, revision: read.revision, contents: parse(kind, key, new TextDecoder().decode(read.bytes)) }
  );
}

function parse<Contents>(kind: RefKind<Contents>, key: string, text: string): Contents {
  try {
    return kind.contents.parse(JSON.parse(text));
  } catch (cause) {
    throw new CatalogError("InvalidTableState", `${key} does not have Lance's format. Repair or delete it`, {
      cause,
    });
  }
}
