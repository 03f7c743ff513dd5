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
  /** What the library proves with that it may see the view; nothing else does. */
  readonly token: string;
  /** What the view refused last, which the library tells in words of its own. */
  readonly failure: unknown;
}

/**
 * Where the library finds the catalog: an address that only this process knows.
 * What it asks there belongs to a request that was authorized and counted already, so it is
 * neither counted by a rate limit nor waits for a connection that requests of clients take.
 */
export interface Gateway extends AsyncDisposable {
  serve(view: TableView): Promise<ServedView>;
}
