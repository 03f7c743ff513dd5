import { type AnyContract, type BodyBounds, bodies, CatalogError } from "@tiltyard/protocol";
import { createMiddleware } from "hono/factory";
import type { AppContext, AppEnv, BodySender } from "../context.ts";
import { openBody } from "./drain-body.ts";
import { checkJsonBounds } from "./json-bounds.ts";

/** The time within which a JSON body must arrive. Streams of rows have no such limit. */
const bodyTimeoutMs = 15_000;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads the JSON body and normalizes it for `zValidator("json")`. A missing body, an empty one and `null` mean `{}`; a
 * `bareField` is the whole body on the wire; and clients send JSON under any content type, while Hono's validator would
 * ignore it. An Arrow stream remains unread for the handler.
 */
export function jsonBody(contract: AnyContract) {
  const { bareField, bodySize } = contract;
  return createMiddleware<AppEnv>(async function jsonBody(c, next) {
    const encoding = c.req.header("content-encoding") ?? "identity";
    if (encoding.toLowerCase() !== "identity")
      throw new CatalogError("UnsupportedMediaType", `content-encoding: send the body without ${encoding}`);
    if (!isArrow(contract, c)) {
      const json = await readJson(c, bodies[bodySize], "authenticated");
      const body = bareField === undefined ? json : { [bareField]: json };
      c.req.json = async <T>() => body as T;
      if (!isJson(c)) c.req.raw.headers.set("content-type", "application/json");
    }
    await next();
  });
}

function isJson(c: AppContext): boolean {
  return c.req.header("content-type") === "application/json";
}

/** Reports whether the body of this request is an Arrow stream. */
export function isArrow({ content }: AnyContract, c: AppContext): boolean {
  if (content !== "either") return content === "arrow";
  return c.req.header("content-type")?.startsWith("application/vnd.apache.arrow") ?? false;
}

/**
 * Reads and parses the JSON body once; later calls return the same value. Requests other than POST have no body.
 *
 * @throws CatalogError PayloadTooLarge, ServiceUnavailable; InvalidInput if the body is slow, incomplete, not UTF-8,
 * not JSON, or exceeds the bounds.
 */
export async function readJson(c: AppContext, bounds: BodyBounds, from: BodySender): Promise<unknown> {
  if (c.req.method !== "POST") return {};
  const json = c.get("json") ?? parse(await readBytes(c, bounds.bytes, from), bounds);
  c.set("json", json);
  return json;
}

function parse(bytes: Uint8Array, bounds: BodyBounds): unknown {
  checkJsonBounds(bytes, bounds);
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new CatalogError("InvalidInput", "the body is not UTF-8");
  }
  try {
    return text.trim() === "" ? {} : (JSON.parse(text) ?? {});
  } catch (error) {
    throw new CatalogError("InvalidInput", `the body is not JSON: ${error instanceof Error ? error.message : ""}`);
  }
}

/**
 * Reserves memory for the declared length, which Node enforces. A body without a declared length is counted during its
 * arrival.
 */
async function readBytes(c: AppContext, bytesMax: number, from: BodySender): Promise<Uint8Array> {
  let length = 0;
  const grow = (bytes: number) => {
    length += bytes;
    if (length > bytesMax) throw new CatalogError("PayloadTooLarge", `the body may have ${bytesMax} bytes at most`);
    c.get("bodyReservation").grow(bytes, from);
  };
  try {
    const declared = c.req.header("content-length");
    if (declared !== undefined) {
      grow(Number(declared));
      const body = c.req.arrayBuffer();
      return new Uint8Array(await (c.env.incoming?.complete ? body : inTime(body)));
    }
    return await inTime(readChunks(c, grow));
  } catch (cause) {
    if (cause instanceof CatalogError) throw cause;
    throw new CatalogError("InvalidInput", "the body broke off", { cause });
  }
}

async function readChunks(c: AppContext, grow: (bytes: number) => void): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of openBody(c)) {
    grow(chunk.byteLength);
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
