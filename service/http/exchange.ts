import type { IncomingMessage, ServerResponse } from "node:http";
import { type Query, readQuery } from "./query.ts";
import type { Turn } from "./turns.ts";

/** A request, and the response to it, as Node has them. */
export interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  /** As it is encoded in the request. */
  readonly path: string;
  readonly query: Query;
  /** When the answer is sent; undefined for at once. */
  readonly turn?: Turn | undefined;
}

/** Answers a request. */
export type Serve = (exchange: Exchange) => Promise<void>;

/** What a proxy may put before the path (RFC 9112, 3.2.2). */
const origin = /^https?:\/\/[^/?]*/i;
/** What a host consists of, with its port (RFC 3986, 3.2.2). */
const hostAndPort = /^[\w.~!$&'()*+,;=%:[\]-]+$/;

export function exchangeOf(incoming: IncomingMessage, outgoing: ServerResponse, turn?: Turn): Exchange {
  const { url = "" } = incoming;
  const target = url.startsWith("/") ? url : url.replace(origin, "");
  const mark = target.indexOf("?");
  const [path, query] = mark === -1 ? [target, ""] : [target.slice(0, mark), target.slice(mark + 1)];
  return { incoming, outgoing, path, query: readQuery(query), turn };
}

/** Whether a request names a host, as each has to (RFC 9112, 3.2). */
export function namesHost(exchange: Exchange): boolean {
  return hostAndPort.test(headerOf(exchange, "host") ?? "");
}

/** A header of a request. Of one that came more than once it has the first value or all, as Node has it for that name. */
export function headerOf({ incoming }: Pick<Exchange, "incoming">, name: string): string | undefined {
  const value = incoming.headers[name];
  return typeof value === "string" ? value : undefined;
}
