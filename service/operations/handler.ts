import type { AnswerOf, Contracts, ManagementContracts, RemoteContracts, RequestOf } from "@tiltyard/protocol";
import type { CommitDeps } from "../commits/deps.ts";
import type { Config } from "../config.ts";
import type { Caller } from "../domain/transaction.ts";
import type { SecretKeys } from "../functions/secret-keys.ts";
import type { JobDeps } from "../jobs/open-job.ts";
import type { Rows } from "../rows/rows.ts";
import type { CredentialVendors } from "../storage/credentials.ts";
import type { Locations } from "../tables/locations.ts";
import type { Worker } from "../tasks/worker.ts";

type Settings = Pick<
  Config,
  "autoRefresh" | "dataOperations" | "dropRetentionMs" | "isolatedNamespaces" | "rayClusters" | "stalledAfterMs"
>;

export interface Catalog extends CommitDeps, JobDeps, Settings {
  /** Vends credentials for tables; undefined if vending is disabled. */
  readonly credentials: CredentialVendors | undefined;
  readonly locations: Locations;
  readonly worker: Pick<Worker, "wake">;
  readonly rows: Rows;
  /** The keys of secrets; none if this catalog stores no secrets. */
  readonly secretKeys: SecretKeys;
}

/** The caller of an operation with its body. */
export interface AuthorizedCaller extends Caller {
  /** The Arrow stream of an operation that accepts one; empty for the others. */
  readonly body: ReadableStream<Uint8Array>;
}

export type Operations = Contracts & ManagementContracts & RemoteContracts;

/** Executes an operation. Its request is parsed and authorized. A CatalogError becomes the error body. */
export type Handler<Name extends keyof Operations, Response = AnswerOf<Operations[Name]>> = (
  request: RequestOf<Operations[Name]>,
  catalog: Catalog,
  caller: AuthorizedCaller,
) => Promise<Response>;

/** The JSON text of a response, which a cache can contain in place of the response. */
export class RenderedJson<Response> {
  declare readonly response: Response;
  readonly text: string;

  constructor(response: Response) {
    this.text = JSON.stringify(response);
  }
}
