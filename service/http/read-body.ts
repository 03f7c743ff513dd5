import type { IncomingMessage } from "node:http";
import { type BodyBounds, CatalogError } from "@tiltyard/protocol";
import { checkBudget } from "./body-budget.ts";
import type { BodyLease } from "./body-memory.ts";
import type { Exchange } from "./exchange.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a body as JSON. An absent body, `null` and `{}` are the same empty request; only UTF-8 is read.
 *
 * @throws CatalogError PayloadTooLarge, InvalidInput, ServiceUnavailable
 */
export async function readJson(exchange: Exchange, bounds: BodyBounds, lease: BodyLease): Promise<unknown> {
  const bytes = await readBytes(exchange, bounds.bytes, lease);
  checkBudget(bytes, bounds);
  const text = decode(bytes);
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text) ?? {};
  } catch (error) {
    throw new CatalogError("InvalidInput", `the body is not JSON: ${error instanceof Error ? error.message : ""}`);
  }
}

/**
 * Reads a body as text.
 *
 * @throws CatalogError PayloadTooLarge, ServiceUnavailable, or InvalidInput for what is not UTF-8
 */
export async function readText(exchange: Exchange, bytesMax: number, lease: BodyLease): Promise<string> {
  return decode(await readBytes(exchange, bytesMax, lease));
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new CatalogError("InvalidInput", "the body is not UTF-8");
  }
}

/** Reserves the declared length, which Node enforces; a body without one is counted as it comes. */
async function readBytes({ incoming }: Exchange, bytesMax: number, lease: BodyLease): Promise<Uint8Array> {
  const length = incoming.headers["content-length"];
  const grow = (bytes: number) => {
    if (lease.bytes + bytes > bytesMax)
      throw new CatalogError("PayloadTooLarge", `this request's body may have ${bytesMax} bytes, no more`);
    lease.grow(bytes);
  };
  if (length !== undefined) {
    grow(Number(length));
    const arrived = takeArrived(incoming, Number(length));
    if (arrived !== undefined) return arrived;
  }
  try {
    const chunks: Uint8Array[] = [];
    // The answer to a refused body reads the rest of it.
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      if (length === undefined) grow(chunk.byteLength);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch (cause) {
    // A client that goes away in the middle of its body is no failure of the service.
    if (cause instanceof CatalogError) throw cause;
    throw new CatalogError("InvalidInput", "the body broke off", { cause });
  }
}

/** A body that arrived with the headers, as most do; undefined while a part of it is missing. */
function takeArrived(incoming: IncomingMessage, length: number): Uint8Array | undefined {
  if (incoming.readableLength !== length) return undefined;
  const bytes: Uint8Array = incoming.read() ?? new Uint8Array();
  // Node takes a request for read when it has ended.
  incoming.resume();
  return bytes;
}
