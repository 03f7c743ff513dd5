import type { HttpBindings } from "@hono/node-server";
import type { PathFields } from "@tiltyard/protocol";
import type { Context } from "hono";
import type { Principal } from "../auth/authenticator.ts";

/** The object that a request names, known before its query and body are validated. */
export interface Target extends PathFields {
  /** The decoded id of the path; undefined for an operation without one. */
  readonly pathId: string | undefined;
}

export interface OpenBody {
  readonly content: "json" | "rows";
  readonly stream: ReadableStream<Uint8Array>;
}

/** The refusal of a request for lack of a valid credential or of a right, for the log. */
export interface Refusal {
  /** The principal, or the address of a caller without one. */
  readonly caller: string;
  /** The id of the API key. The id of an invalid key is the one that the key itself contains. */
  readonly apiKeyId: string | undefined;
  /** The right that the caller lacks; undefined if the operation itself refused the request. */
  readonly role?: string;
  readonly object?: string;
}

/** The state of a request that later steps, the log and the response read. */
export interface AppEnv {
  /** Node's request and response; an empty object when a test calls `app.request(path, init, {})`. */
  readonly Bindings: Partial<HttpBindings>;
  readonly Variables: {
    requestId: string;
    /** The operation id, which labels logs and metrics; absent for pages. */
    operation?: string;
    traceparent?: string;
    body?: OpenBody;
    releaseBody?: () => void;
    principal?: Principal;
    refusal?: Refusal;
    /** The caller and the object of an operation that passed the checks before its body. */
    admitted: { readonly principal: Principal; readonly target: Target };
    /** The unknown fields of the request, which had no effect. */
    ignoredFields?: readonly string[];
    /** Reports whether a stream of rows failed after the status 200 was sent. */
    hasFailedRows?: boolean;
  };
}

export type AppContext = Context<AppEnv>;
