import type { IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { CatalogError, type ErrorKind } from "@tiltyard/protocol";
import { type Failure, failureTrailer } from "../wire.ts";
import { ChildEnded } from "./child-process.ts";
import type { WatchedChild } from "./crash-isolation.ts";

/** An error of the library with the library's own text. */
export class LibraryError extends Error {
  override readonly name = "LibraryError";
}

/** Reads the whole body of a response. @throws ChildEnded if it is incomplete. */
export async function readBody(response: IncomingMessage): Promise<Buffer> {
  try {
    return await buffer(response);
  } catch (cause) {
    throw new ChildEnded("ended during its response", { cause });
  }
}

/** Reads the JSON response of the child. @throws CatalogError, LibraryError, ChildEnded */
export async function readJson(response: IncomingMessage): Promise<never> {
  const body: unknown = JSON.parse((await readBody(response)).toString("utf8"));
  if (response.statusCode === 200) return body as never;
  // The child is part of the catalog and always writes valid failures.
  const failure = body as Failure;
  if ("kind" in failure) throw new CatalogError(failure.kind as ErrorKind, failure.message);
  throw new LibraryError(failure.text);
}

/** Streams rows as the child sends them. @throws Error with the child's text if they break off. */
export async function* rowsOf(
  response: IncomingMessage,
  within: WatchedChild["within"],
): AsyncGenerator<Uint8Array, void> {
  const pieces: AsyncIterator<Uint8Array> = response[Symbol.asyncIterator]();
  try {
    for (let next = await within(pieces.next()); !next.done; next = await within(pieces.next())) yield next.value;
  } finally {
    response.destroy();
  }
  const trailer = response.trailers[failureTrailer];
  if (trailer === undefined) return;
  const failure = JSON.parse(decodeURIComponent(trailer)) as Failure;
  throw new Error("text" in failure ? failure.text : failure.message);
}
