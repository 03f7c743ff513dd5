import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { plainZone } from "@tiltyard/lance-worker";
import { type Manifest, ofField, ofManifest, readFile, SchemaField } from "./manifest.ts";
import { withManifest } from "./manifest-writer.ts";
import { readable, readFields } from "./protobuf.ts";

/** Matches the zone in a type such as `timestamp:us:+05:30`, which Lance 12 splits at each colon and cannot parse. */
const colonZone = /(?<=(?:^|:)timestamp:\w+:)[+-]\d\d:\d\d(?=:|$)/;

/** A column with timestamps that Lance 12 cannot read, possibly in a struct or a list. */
export interface ZonedColumn {
  readonly name: string;
  readonly zone: string;
}

/** The types of fields by id. */
export type TypesOfFields = ReadonlyMap<number, string>;

/** Returns the columns whose timestamps have a zone with a colon; none for another format. @throws CatalogError Unsupported */
export function zonedColumnsOf(manifest: Manifest): readonly ZonedColumn[] {
  const columns = new Map<number, string>();
  const found = new Map<string, ZonedColumn>();
  for (const { id, parentId, name: own, logicalType } of manifest.isLance ? manifest.fields : []) {
    // Parents precede their children.
    const name = columns.get(parentId) ?? own;
    const [zone] = colonZone.exec(logicalType) ?? [];
    if (zone !== undefined) found.set(name, { name, zone });
    columns.set(id, name);
  }
  return [...found.values()];
}

/**
 * Returns a manifest file that Lance 12 can read: zones lose their colons, and nothing else changes.
 *
 * @returns Also the replaced types, for `restoreZones`.
 * @throws CatalogError Unsupported for a manifest that cannot be parsed.
 */
export function removeColons(file: Uint8Array): { readonly plain: Uint8Array; readonly replaced: TypesOfFields } {
  const replaced = new Map<number, string>();
  const plain = replaceTypes(file, (id, type) => {
    const plainType = withoutColon(type);
    if (plainType !== type) replaced.set(id, type);
    return plainType;
  });
  return { plain, replaced };
}

/** Returns a manifest file that follows one of `removeColons` with the zones of its fields. @throws CatalogError Unsupported */
export function restoreZones(file: Uint8Array, replaced: TypesOfFields): Uint8Array {
  return replaceTypes(file, (id, type) => {
    const former = replaced.get(id);
    return former !== undefined && withoutColon(former) === type ? former : type;
  });
}

function withoutColon(logicalType: string): string {
  return logicalType.replace(colonZone, plainZone);
}

function replaceTypes(file: Uint8Array, replace: (id: number, type: string) => string): Uint8Array {
  return readable(() => {
    const writer = new BinaryWriter();
    for (const field of readFields(readFile(file).manifest.content)) {
      if (field.number !== ofManifest.fields) {
        writer.raw(field.bytes);
        continue;
      }
      const { id, logicalType } = new SchemaField(field.content);
      writer.tag(ofManifest.fields, WireType.LengthDelimited).fork();
      for (const part of readFields(field.content)) if (part.number !== ofField.logicalType) writer.raw(part.bytes);
      writer.tag(ofField.logicalType, WireType.LengthDelimited).string(replace(id, logicalType)).join();
    }
    return withManifest(file, writer.finish());
  });
}
