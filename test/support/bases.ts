/** Returns the manifest of a version with a folder as its only base, and with further fields. */
export function manifestWith(base: string, ...more: readonly number[]): Buffer {
  const path = Buffer.from(base);
  const message = Buffer.concat([Buffer.from([0x22, path.length]), path]);
  const manifest = Buffer.concat([Buffer.from([0x92, 0x01, message.length]), message, Buffer.from(more)]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(manifest.length);
  return Buffer.concat([length, manifest, Buffer.alloc(8), Buffer.from([0, 0, 2, 0]), Buffer.from("LANC")]);
}
