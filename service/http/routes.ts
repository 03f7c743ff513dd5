import { CatalogError } from "@tiltyard/protocol";
import type { Result } from "hono/router";
import { RegExpRouter } from "hono/router/reg-exp-router";
import { TrieRouter } from "hono/router/trie-router";
import type { Exchange, Serve } from "./exchange.ts";

/**
 * Finds what serves a request. One regular expression tells all paths with one parameter apart; the others may overlap with
 * these, which it cannot tell.
 */
export class Routes {
  readonly #withOneParameter = new RegExpRouter<Serve>();
  readonly #others = new TrieRouter<Serve>();

  /** @param path As in the protocol, `/v1/table/{id}/describe` */
  add(methods: readonly string[], path: string, serve: Serve): void {
    const router = path.split("{").length === 2 ? this.#withOneParameter : this.#others;
    for (const method of methods) router.add(method, patternOf(path), serve);
  }

  find({ incoming, path }: Exchange): Serve | undefined {
    // Node sends no body with an answer to HEAD.
    const method = incoming.method === "HEAD" ? "GET" : (incoming.method ?? "GET");
    return firstOf(this.#withOneParameter.match(method, path)) ?? firstOf(this.#others.match(method, path));
  }
}

/** The refusal of a path that leads nowhere. */
export function routeNotFound(): CatalogError {
  return new CatalogError("RouteNotFound", "there is nothing at this path");
}

/** One operation at the most is at a path. */
function firstOf([[found]]: Result<Serve>): Serve | undefined {
  return found?.[0];
}

/** A path of the protocol as Hono writes it. */
export function patternOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
