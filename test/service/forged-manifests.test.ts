/** Manifests that clients forge are refused before they need much memory. */
import { hasKind } from "@tiltyard/protocol";
import { expect, test } from "vitest";
import { indicesOf } from "../../service/lance/indices.ts";
import { Manifest } from "../../service/lance/manifest.ts";

/** Returns the message with one field of bytes. @param tag The number of the field, times 8, plus 2. */
function messageWith(tag: number, content: Uint8Array): Buffer {
  const length: number[] = [];
  for (let rest = content.length; ; rest >>>= 7) {
    length.push(rest < 0x80 ? rest : (rest & 0x7f) | 0x80);
    if (rest < 0x80) break;
  }
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

function section(content: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(content.length);
  return Buffer.concat([length, content]);
}

test("an index with millions of columns is not read", () => {
  const indices = section(messageWith(0x0a, messageWith(0x12, Buffer.alloc(10_000_000))));
  // The index section is at the position 0.
  const manifest = section(Buffer.from([0x30, 0x00]));
  const footer = Buffer.alloc(16);
  footer.writeBigUInt64LE(BigInt(indices.length));
  footer.write("LANC", 12);
  const heapBefore = process.memoryUsage().heapUsed;
  expect(() => indicesOf(new Manifest(Buffer.concat([indices, manifest, footer])))).toThrow(
    expect.toSatisfy((error: unknown) => hasKind(error, "Unsupported")),
  );
  expect(process.memoryUsage().heapUsed - heapBefore).toBeLessThan(50_000_000);
});
