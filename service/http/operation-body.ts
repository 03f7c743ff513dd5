import { type AnyContract, bodies, CatalogError, Context as ContextField, Identity } from "@tiltyard/protocol";
import { z } from "zod";
import type { BodyLease } from "./body-memory.ts";
import type { Exchange } from "./exchange.ts";
import { readJson } from "./read-body.ts";
import { requestIdOf, traceparentOf } from "./request-id.ts";
import type { Trail } from "./trail.ts";

const Envelope = z.object({ identity: Identity.nullish(), context: ContextField.nullish() }).catch({});

/** The body of a request, parsed and not validated, with the identity that it holds. */
interface OperationBody {
  readonly body: unknown;
  readonly identity: z.infer<typeof Identity> | undefined;
}

/**
 * Reads the JSON body of a POST; every other request has the empty one. The request id and the trace that it holds go to
 * the trail.
 *
 * @param lease Accounts for the memory that the body takes.
 * @param isAnonymous Whether the headers hold no credential: then only a small body is read, because the caller is not known yet.
 * @throws CatalogError
 */
export async function readBody(
  exchange: Exchange,
  { bodySize }: AnyContract,
  trail: Trail,
  { lease, isAnonymous }: { readonly lease: BodyLease; readonly isAnonymous: boolean },
): Promise<OperationBody> {
  let body: unknown = {};
  try {
    if (exchange.incoming.method === "POST" && !trail.takesRows)
      body = await readJson(exchange, isAnonymous ? bodies.small : bodies[bodySize], lease);
  } catch (error) {
    if (!isAnonymous || !(error instanceof CatalogError) || error.kind !== "InvalidInput") throw error;
    throw new CatalogError(
      "Unauthenticated",
      "no credential: the request has none in its headers, and its body cannot be read",
    );
  } finally {
    trail.bodyBytes = lease.bytes;
  }
  const envelope = envelopeOf(body);
  trail.requestId ??= requestIdOf(envelope.context?.["header.x-request-id"]);
  trail.traceparent ??= traceparentOf(envelope.context?.["header.traceparent"]);
  return { body, identity: envelope.identity ?? undefined };
}

function envelopeOf(body: unknown): z.infer<typeof Envelope> {
  const isThere = typeof body === "object" && body !== null && ("identity" in body || "context" in body);
  return isThere ? Envelope.parse(body) : {};
}
