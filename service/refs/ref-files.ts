import { CatalogError, type Identifier } from "@tiltyard/protocol";
import type { z } from "zod";
import type { StoreDeps } from "../commits/deps.ts";
import { keyText, type PageRequest, readScannedPage } from "../domain/page.ts";
import { requireTable } from "../domain/require.ts";
import { carryOut, prepareAudit, type TableChange } from "../domain/transaction.ts";
import { refFile } from "../lance/version-names.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import type { TableRecord } from "../store/tables.ts";
import { exclusively, type Lease } from "../tasks/lease.ts";

const readAtOnce = 32;
/** The maximum size of the files that one request keeps. A file has some hundred bytes, and a forged one a megabyte. */
const keptBytesMax = 32 * 1024 * 1024;
/** The size of the files after which a page ends. */
const pageBytesMax = 1024 * 1024;

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
  readonly sizeBytes: number;
}

export function refKey({ location }: TableRecord, { folder }: RefKind<unknown>, name: string): string {
  return refFile(location, folder, name);
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

/** Lists all refs of a table in the order of their names. @throws CatalogError InvalidTableState if their files are large. */
export async function listRefs<Contents>(
  deps: Pick<StoreDeps, "storage">,
  table: TableRecord,
  kind: RefKind<Contents>,
): Promise<readonly Ref<Contents>[]> {
  const { items, next } = await readSome(deps, table, kind, "", Number.POSITIVE_INFINITY, keptBytesMax);
  if (next === undefined) return items;
  throw new CatalogError(
    "InvalidTableState",
    `the files in ${folderOf(table, kind)} have more than ${keptBytesMax} bytes. Delete some of them`,
  );
}

/**
 * Reads refs whose names follow `after`, up to a number of them or a size of their files.
 *
 * @returns Also the name that further refs follow; undefined without more.
 */
async function readSome<Contents>(
  { storage }: Pick<StoreDeps, "storage">,
  table: TableRecord,
  kind: RefKind<Contents>,
  after: string,
  limit: number,
  bytesMax: number,
) {
  const objects = await storage.at(table.location);
  const files = (await listFiles(objects, folderOf(table, kind))).filter(({ name }) => name > after);
  const items: Ref<Contents>[] = [];
  let from = 0;
  for (let bytes = 0; from < files.length && items.length < limit && bytes < bytesMax; from += readAtOnce) {
    const batch = files.slice(from, from + readAtOnce);
    // Files that are deleted during the listing are skipped.
    const read = await Promise.all(batch.map((file) => readRef(objects, kind, file)));
    for (const ref of read) {
      if (ref === undefined) continue;
      items.push(ref);
      bytes += ref.sizeBytes;
    }
  }
  const isWhole = from >= files.length && items.length <= limit;
  const kept = items.slice(0, limit);
  const last = items.length > limit ? kept.at(-1) : files[from - 1];
  return { items: kept, next: isWhole ? undefined : last?.name };
}

/** Reads a page of the refs of a table. */
export async function readRefs<Contents>(
  deps: StoreDeps,
  request: PageRequest & { readonly id: Identifier },
  kind: RefKind<Contents>,
) {
  const table = await requireTable(deps.store.read, request.id);
  const read = (after: string | undefined, limit: number) =>
    readSome(deps, table, kind, after ?? "", limit, pageBytesMax);
  return readScannedPage({ name: kind.folder, key: keyText }, request, read, ({ name }) => name);
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
  if (read === undefined) return undefined;
  const { revision, bytes } = read;
  const contents = parse(kind, key, new TextDecoder().decode(bytes));
  return { name, key, revision, sizeBytes: bytes.length, contents };
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
