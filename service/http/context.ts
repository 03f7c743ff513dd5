import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { RequestIdVariables } from "hono/request-id";
import type { Principal } from "../auth/authenticator.ts";
import type { BodyReservation } from "./middleware/body-memory.ts";
import type { Target } from "./middleware/target.ts";

/** The state that middleware passes along with a request. Each variable is set by the middleware of its name. */
export interface AppEnv {
  /** Node's request and response; an empty object when a test calls `app.request(path, init, {})`. */
  readonly Bindings: Partial<HttpBindings>;
  readonly Variables: RequestIdVariables & {
    /** The operation id, which labels logs and metrics; absent for pages. */
    operation?: string;
    /** The caller's W3C trace context. */
    traceparent?: string;
    bodyReservation: BodyReservation;
    /** The parsed JSON body, before validation. */
    json?: unknown;
    principal?: Principal;
    target: Target;
    /** The validated request: the fields of path, query and body in one object. */
    request: Readonly<Record<string, unknown>>;
    /** Whether a stream of rows failed after its 200 was sent. */
    hasFailedRows?: boolean;
  };
}

export type AppContext = Context<AppEnv>;
