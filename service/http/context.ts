import type { HttpBindings } from "@hono/node-server";
import type { PathFields } from "@tiltyard/protocol";
import type { Context } from "hono";
import type { RequestIdVariables } from "hono/request-id";
import type { Principal } from "../auth/authenticator.ts";

/** The object that a request names, known before its query and body are validated. */
export interface Target extends PathFields {
  /** The decoded id of the path; undefined for an operation without one. */
  readonly pathId: string | undefined;
}

/** The sender of a body. The credential of an anonymous one may be in the body itself. */
export type BodySender = "anonymous" | "authenticated";

/** The memory that the body of one request occupies. */
export interface BodyReservation extends Disposable {
  /** Reserves more memory. @throws CatalogError ServiceUnavailable if all bodies together would exceed their share. */
  grow(bytes: number, from: BodySender): void;
}

/** The state that middleware attaches to a request. Each variable is set by the middleware of its name. */
export interface AppEnv {
  /** Node's request and response; an empty object when a test calls `app.request(path, init, {})`. */
  readonly Bindings: Partial<HttpBindings>;
  readonly Variables: RequestIdVariables & {
    /** The operation id, which labels logs and metrics; absent for pages. */
    operation?: string;
    /** The caller's W3C trace context. */
    traceparent?: string;
    bodyReservation: BodyReservation;
    bodyStream?: ReadableStream<Uint8Array>;
    /** The parsed JSON body, before validation. */
    json?: unknown;
    principal?: Principal;
    target: Target;
    /** The validated request: the fields of path, query and body in one object. */
    request: Readonly<Record<string, unknown>>;
    /** The unknown fields of the request, which had no effect. */
    ignoredFields?: readonly string[];
    /** Reports whether a stream of rows failed after the status 200 was sent. */
    hasFailedRows?: boolean;
  };
}

export type AppContext = Context<AppEnv>;
