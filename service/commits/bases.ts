import { BinaryReader } from "@bufbuild/protobuf/wire";
import { CatalogError, type Identifier } from "@tiltyard/protocol";
import { ancestorUris, contains, type Location, parseLocation } from "../storage/location.ts";
import type { ReadObject } from "../storage/object-store.ts";
import { findTableAt } from "../store/tables.ts";
import { manifestBytesMax, versionsFolder } from "./manifest.ts";
import type { CommitParts } from "./parts.ts";

/** A manifest in the folder of a table. */
export interface ManifestFile {
  readonly location: string;
  readonly branch: string;
  readonly name: string;
}

/** The field numbers of `base_paths` in Lance's message `Manifest` and of `path` in `BasePath`. */
const basePaths = 18;
const basePath = 4;
/** The end of every Lance file, after the position of the manifest and the version of the format. */
const magic = "LANC";
const footerBytes = 16;
const lengthBytes = 4;

/**
 * Checks that the caller may read all files of a version. A manifest may name folders outside its table, as that of a
 * shallow clone does. The catalog and jobs would read those folders for every reader of the table.
 *
 * @param mayRead Reports whether the caller may read the table with this name, which owns such a folder.
 * @throws CatalogError PermissionDenied; InvalidInput if the manifest cannot be parsed.
 */
export async function requireReadableBases(
  parts: CommitParts,
  manifest: ManifestFile,
  mayRead: (table: Identifier) => boolean,
): Promise<void> {
  return requireReadable(parts, await foreignBasesOf(parts, manifest), mayRead);
}

/** Checks the folders that `foreignBasesOf` returned, like `requireReadableBases`. */
export async function requireReadable(
  { store }: Pick<CommitParts, "store">,
  bases: readonly Location[],
  mayRead: (table: Identifier) => boolean,
): Promise<void> {
  for (const base of bases) {
    const owner = await findTableAt(store.read, [base.uri, ...ancestorUris(base)]);
    if (owner === undefined || !mayRead(owner))
      throw new CatalogError(
        "PermissionDenied",
        `the version has files in ${base.uri}, which belong neither to the table nor to a table that you may read`,
      );
  }
}

/** Returns the folders outside its table that a manifest names; none if the object is not a Lance manifest. */
export async function foreignBasesOf(
  { storage }: Pick<CommitParts, "storage">,
  { location, branch, name }: ManifestFile,
): Promise<readonly Location[]> {
  const own = parseLocation(location);
  const key = `${versionsFolder(own, branch)}/${name}`;
  const found = await (await storage.at(own)).read(key, manifestBytesMax);
  const bases = found === undefined ? [] : pathsIn(found, name).map((path) => parseLocation(path));
  return bases.filter((base) => !contains(own, base));
}

function pathsIn({ bytes }: ReadObject, name: string): readonly string[] {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (file.length < footerBytes + lengthBytes || file.toString("latin1", file.length - magic.length) !== magic)
    return [];
  const paths: string[] = [];
  try {
    const end = file.length - footerBytes;
    const reader = new BinaryReader(file.subarray(Number(file.readBigUInt64LE(end)) + lengthBytes, end));
    while (reader.pos < reader.len) {
      const [number, type] = reader.tag();
      if (number === basePaths) paths.push(pathOf(new BinaryReader(reader.bytes())));
      else reader.skip(type, number);
    }
  } catch (cause) {
    throw new CatalogError("InvalidInput", `the manifest ${name} cannot be parsed`, { cause });
  }
  return paths;
}

function pathOf(message: BinaryReader): string {
  let path = "";
  while (message.pos < message.len) {
    const [number, type] = message.tag();
    if (number === basePath) path = message.string();
    else message.skip(type, number);
  }
  return path;
}
