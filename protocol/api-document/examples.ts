import requests from "./examples.json" with { type: "json" };

/** A request to a catalog, by the fields of its contract, with the response. */
export interface Example {
  readonly operation: string;
  readonly request: Readonly<Record<string, unknown>> & {
    readonly id?: readonly string[];
    readonly indexName?: string;
  };
  readonly response?: unknown;
}

/** The examples in the order in which a new catalog accepts them. A test sends them and records the responses. */
export const examples: readonly Example[] = requests;
