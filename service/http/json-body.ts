import { type AnyContract, type BodyBounds, CatalogError } from "@tiltyard/protocol";
import type { BodyMemory, BodySender } from "./body-memory.ts";
import type { AppContext } from "./context.ts";
import { openBody } from "./drain-body.ts";
import { checkJsonBounds } from "./json-bounds.ts";

/** The time within which a JSON body must arrive. Streams of rows have no such limit. */
const bodyTimeoutMs = 15_000;
const utf8 = new TextDecoder("utf-8", { fatal: true });

export function isArrow({ content }: AnyContract, c: AppContext): boolean {
  if (content !== "either") return content === "arrow";
  return c.req.header("content-type")?.startsWith("application/vnd.apache.arrow") ?? false;
}

/** Rejects a compressed body. @throws CatalogError UnsupportedMediaType */
export function refuseEncoding(c: AppContext): void {
  const encoding = c.req.header("content-encoding");
  if (encoding !== undefined && encoding.toLowerCase() !== "identity")
    throw new CatalogError("UnsupportedMediaType", `content-encoding: send the body without ${encoding}`);
}

/**
 * Reads the JSON body once for `c.req.json()`; later calls return the same text. A missing body means `{}`. Clients send
 * JSON under any content type or none, while `zValidator("json")` would ignore it.
 *
 * @throws CatalogError PayloadTooLarge, ServiceUnavailable; InvalidInput if the body is slow, incomplete, not UTF-8, or
 * exceeds the bounds.
 */
export async function readText(c: AppContext, bounds: BodyBounds, memory: BodyMemory, from: BodySender) {
  if ("text" in c.req.bodyCache) return c.req.text();
  const text = c.req.method === "POST" ? decode(await readBytes(c, bounds, memory, from), bounds) : "{}";
  // Hono caches a body that was read. Its type has the text in place of a promise of it.
  Object.assign(c.req.bodyCache, { text: Promise.resolve(text) });
  // Without the type, the validator would use its default, which is an empty object.
  if (text !== "{}" && c.req.header("content-type") !== "application/json")
    c.req.raw.headers.set("content-type", "application/json");
  return text;
}

function decode(bytes: Uint8Array, bounds: BodyBounds): string {
  checkJsonBounds(bytes, bounds);
  try {
    const text = utf8.decode(bytes);
    return text.trim() === "" ? "{}" : text;
  } catch {
    throw new CatalogError("InvalidInput", "the body is not UTF-8");
  }
}

/** Reserves memory for the declared length, which Node enforces, or else for the length so far. */
async function readBytes(c: AppContext, { bytes: bytesMax }: BodyBounds, memory: BodyMemory, from: BodySender) {
  const reserve = (bytes: number) => {
    if (bytes > bytesMax) throw new CatalogError("PayloadTooLarge", `the body may have ${bytesMax} bytes at most`);
    c.get("releaseBody")?.();
    c.set("releaseBody", undefined);
    c.set("releaseBody", memory.reserve(bytes, from));
  };
  const declared = c.req.header("content-length");
  if (declared !== undefined) reserve(Number(declared));
  const { incoming } = c.env;
  if (incoming?.complete && !incoming.destroyed) {
    const bytes: Buffer = incoming.read() ?? Buffer.alloc(0);
    if (declared === undefined) reserve(bytes.length);
    return bytes;
  }
  try {
    return await inTime(readChunks(c, declared === undefined ? reserve : () => undefined));
  } catch (cause) {
    if (cause instanceof CatalogError) throw cause;
    throw new CatalogError("InvalidInput", "the body broke off", { cause });
  }
}

async function readChunks(c: AppContext, reserve: (bytes: number) => void): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of openBody(c, "json")) {
    length += chunk.byteLength;
    reserve(length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Rejects a body that does not arrive in time. @throws CatalogError InvalidInput */
export async function inTime<T>(body: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const expire = () => reject(new CatalogError("InvalidInput", "the request did not arrive in time"));
  // After a pause of the process, timers run before the event loop reads what has arrived; an immediate runs after it.
  const timer = setTimeout(() => setImmediate(expire), bodyTimeoutMs);
  try {
    return await Promise.race([body, late]);
  } finally {
    clearTimeout(timer);
  }
}
