import type { IncomingMessage } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";

/** The request as Node has it, with its connection. */
export function incomingOf(context: Context): IncomingMessage {
  return (context.env as HttpBindings).incoming;
}
