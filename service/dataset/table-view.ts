import type { Contracts, RequestOf, ResponseOf } from "@tiltyard/protocol";

/** The operations that the library asks the catalog for when it works on one table. */
export const viewOperations = [
  "declareTable",
  "describeTable",
  "listTableVersions",
  "describeTableVersion",
  "createTableVersion",
] as const;
export type ViewOperation = (typeof viewOperations)[number];

/** One table as the library is to see it while it works for one request. */
export type TableView = {
  readonly [Name in ViewOperation]: (request: RequestOf<Contracts[Name]>) => Promise<ResponseOf<Contracts[Name]>>;
};

/** A view that the library can connect to. */
export interface ServedView extends Disposable {
  readonly uri: string;
  /** The library's credential for the view; there is no other. */
  readonly token: string;
  /** The view's latest refusal, which the library reports in words of its own. */
  readonly failure: unknown;
}

/**
 * Where the library finds the catalog: an address that only this process knows. Its requests belong to a request that
 * was authorized and counted already, so no rate limit counts them, and they do not wait for connections of clients.
 */
export interface Gateway extends AsyncDisposable {
  serve(view: TableView): Promise<ServedView>;
}
