import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { footerBytes, lengthBytes, ofEntry, ofManifest, readFile, type Section } from "./manifest.ts";
import { type Field, last, readable, readFields, uint, unsupported } from "./protobuf.ts";

export interface ReplacedMetadata {
  readonly version: number;
  readonly timestampMillis: number;
  readonly uuid: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The field numbers in the messages of Lance's `transaction.proto`. */
const ofTransaction = { readVersion: 1, uuid: 2, updateConfig: 110 } as const;
const ofUpdateConfig = { schemaMetadataUpdates: 8 } as const;
const ofUpdateMap = { entries: 1, replace: 2 } as const;
/** The field numbers of Google's `timestamp.proto`. */
const ofTimestamp = { seconds: 1, nanos: 2 } as const;

/** The flags of features that writers must know. A change of the metadata preserves all of them. */
const knownFeatureFlags = 0xffn;

/**
 * Creates the manifest that follows another one, with replaced metadata of its schema, in Lance's format. Lance's
 * library for Node has no call for that. The sections of a manifest file are the metadata of indices and, last, the
 * transaction of the version; the manifest contains their positions. The new transaction begins at the position of the
 * old one, so everything that this code does not know, and that differs between Lance 12 and 14, stays unchanged.
 *
 * @throws CatalogError Unsupported for a manifest with a different layout.
 */
export function replaceSchemaMetadata(file: Uint8Array, change: ReplacedMetadata) {
  return readable(() => nextManifest(file, change));
}

function nextManifest(file: Uint8Array, { version, timestampMillis, uuid, metadata }: ReplacedMetadata) {
  const { sections, manifest } = readFile(file);
  const fields = readFields(manifest.content);
  const flags = uint(fields, ofManifest.writerFeatureFlags) ?? 0n;
  if ((flags & ~knownFeatureFlags) !== 0n)
    throw unsupported(`it has the feature flags ${flags}, of which some are new`);
  const readVersion = uint(fields, ofManifest.version) ?? 0n;
  const old = findTransaction(sections, fields);
  const transaction = writeTransaction(readVersion, uuid, metadata);
  // The file name in the table's `_transactions` folder, where Lance reads the changes of a version.
  const transactionFile = `${readVersion}-${uuid}.txn`;

  const replaced: readonly number[] = [
    ofManifest.version,
    ofManifest.schemaMetadata,
    ofManifest.timestamp,
    ofManifest.transactionFile,
  ];
  const writer = new BinaryWriter();
  for (const field of fields) if (!replaced.includes(field.number)) writer.raw(field.bytes);
  writer.tag(ofManifest.version, WireType.Varint).uint64(version);
  for (const [key, value] of Object.entries(metadata)) writeEntry(writer, ofManifest.schemaMetadata, key, value);
  writer.tag(ofManifest.timestamp, WireType.LengthDelimited).fork();
  writer.tag(ofTimestamp.seconds, WireType.Varint).int64(Math.floor(timestampMillis / 1000));
  writer.tag(ofTimestamp.nanos, WireType.Varint).int32((timestampMillis % 1000) * 1_000_000);
  writer.join().tag(ofManifest.transactionFile, WireType.LengthDelimited).string(transactionFile);

  const before = [
    file.subarray(0, old?.start ?? manifest.start),
    ...(old === undefined ? [] : withLength(transaction)),
  ];
  return { file: joinFile(before, writer.finish(), file), transaction, transactionFile };
}

/** Returns a manifest file with another manifest after the same sections. @throws CatalogError Unsupported */
export function withManifest(file: Uint8Array, manifest: Uint8Array): Uint8Array {
  return joinFile([file.subarray(0, readFile(file).manifest.start)], manifest, file);
}

/** Joins the sections before a manifest, the manifest and a footer. @param file Has the version of the file format. */
function joinFile(before: readonly Uint8Array[], manifest: Uint8Array, file: Uint8Array): Uint8Array {
  const position = Buffer.alloc(8);
  position.writeBigUInt64LE(BigInt(before.reduce((bytes, part) => bytes + part.length, 0)));
  return Buffer.concat([...before, ...withLength(manifest), position, file.subarray(file.length - footerBytes + 8)]);
}

/** Returns the section of the version's transaction; undefined if the transaction is only in a separate file. */
function findTransaction(sections: readonly Section[], manifest: readonly Field[]): Section | undefined {
  const indexStart = uint(manifest, ofManifest.indexSection);
  const others = sections.filter(({ start }) => BigInt(start) !== indexStart);
  if (indexStart !== undefined && others.length === sections.length) throw unsupported("its indices are not in it");
  const [transaction] = others;
  if (transaction === undefined) return undefined;
  const uuid = last(readFields(transaction.content), ofTransaction.uuid)?.string();
  const isTransaction =
    uuid !== undefined && last(manifest, ofManifest.transactionFile)?.string().endsWith(`-${uuid}.txn`) === true;
  if (others.length > 1 || transaction !== sections.at(-1) || !isTransaction)
    throw unsupported("it has a section that is neither its indices nor its transaction");
  return transaction;
}

/** Writes the record that a concurrent writer reads to rebase its own commit. */
function writeTransaction(readVersion: bigint, uuid: string, metadata: Readonly<Record<string, string>>): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(ofTransaction.readVersion, WireType.Varint).uint64(readVersion);
  writer.tag(ofTransaction.uuid, WireType.LengthDelimited).string(uuid);
  writer.tag(ofTransaction.updateConfig, WireType.LengthDelimited).fork();
  writer.tag(ofUpdateConfig.schemaMetadataUpdates, WireType.LengthDelimited).fork();
  for (const [key, value] of Object.entries(metadata)) writeEntry(writer, ofUpdateMap.entries, key, value);
  writer.tag(ofUpdateMap.replace, WireType.Varint).bool(true);
  return writer.join().join().finish();
}

function writeEntry(writer: BinaryWriter, number: number, key: string, value: string): void {
  writer.tag(number, WireType.LengthDelimited).fork();
  writer.tag(ofEntry.key, WireType.LengthDelimited).string(key);
  writer.tag(ofEntry.value, WireType.LengthDelimited).string(value);
  writer.join();
}

function withLength(content: Uint8Array): readonly Uint8Array[] {
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(content.length);
  return [length, content];
}
