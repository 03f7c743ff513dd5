import type { AnyContract, QueryOf, ResponseOf } from "@tiltyard/protocol";
import type { z } from "zod";
import type { Context } from "./context-headers.ts";

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** The Arrow stream of an operation that accepts one. */
  readonly body?: Uint8Array | ReadableStream<Uint8Array>;
}

/** The request of an operation: the parts of the id and the fields of the query and the body. */
export type CatalogRequest<C extends AnyContract> = {
  /** The parts of the object's identifier; the root namespace when absent. */
  readonly id?: readonly string[];
  /** The name of the index, for operations on a single index. */
  readonly indexName?: string;
} & QueryOf<C> &
  Omit<z.input<C["body"]>, "id" | "context"> & { readonly context?: Context };

/**
 * The response, whose context contains the headers of the HTTP response. A response that is a number or a text has no
 * context; rows are an Arrow IPC file in memory; a map is in the same field as in the request.
 */
export type CatalogAnswer<C extends AnyContract> =
  ResponseOf<C> extends number | string
    ? ResponseOf<C>
    : (ResponseOf<C> extends undefined
        ? object
        : ResponseOf<C> extends ReadableStream
          ? { readonly data: Uint8Array }
          : C["bareField"] extends string
            ? { readonly [Name in C["bareField"]]: ResponseOf<C> }
            : Omit<ResponseOf<C>, "context">) & {
        readonly context: Context;
      };
