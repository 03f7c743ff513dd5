import { type AnyContract, bodies, CatalogError, Context as ContextField, Identity } from "@tiltyard/protocol";
import { z } from "zod";
import type { OperationParts, Step } from "./operation.ts";
import { readJson } from "./read-body.ts";
import { requestIdOf, traceparentOf } from "./request-id.ts";

const EnvelopeBody = z.object({ identity: Identity.nullish(), context: ContextField.nullish() }).catch({});

/** What is read of a body before it is validated: the identity, and the context. */
export type Envelope = z.infer<typeof EnvelopeBody>;

function envelopeOf(body: unknown): Envelope {
  const isThere = typeof body === "object" && body !== null && ("identity" in body || "context" in body);
  return isThere ? EnvelopeBody.parse(body) : {};
}

/**
 * Reads the JSON body of a POST; every other request has the empty one. The memory that it takes is accounted for until
 * the request is answered.
 */
export function readBody(contract: AnyContract, { bodyMemory }: OperationParts): Step {
  const { bodySize } = contract;
  return async (context, next) => {
    const trail = context.get("trail");
    const principal = context.get("principal");
    using lease = bodyMemory.lease({ isAnonymous: principal === undefined });
    let body: unknown = {};
    try {
      if (context.req.method === "POST" && !context.get("takesRows"))
        body = await readJson(context, principal === undefined ? bodies.small : bodies[bodySize], lease);
    } catch (error) {
      if (principal !== undefined || !(error instanceof CatalogError) || error.kind !== "InvalidInput") throw error;
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
    context.set("envelope", envelope);
    context.set("body", body);
    await next();
  };
}
