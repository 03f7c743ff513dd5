import type { Contracts, RequestOf, ResponseOf } from "@tiltyard/protocol";

/** The operations that the library calls while it works on one table. */
export const viewOperations = [
  "declareTable",
  "describeTable",
  "listTableVersions",
  "describeTableVersion",
  "createTableVersion",
] as const;
export type ViewOperation = (typeof viewOperations)[number];

/** A table as the library sees it during one request. */
export type TableView = {
  readonly [Name in ViewOperation]: (request: RequestOf<Contracts[Name]>) => Promise<ResponseOf<Contracts[Name]>>;
} & {
  /** Holds back the versions that the library commits from now on. */
  hold(): void;
};
