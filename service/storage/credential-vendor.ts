import { CatalogError } from "@tiltyard/protocol";
import type { Location } from "./location.ts";

/** What credentials allow: to list and get the objects of a folder, or also to put and delete them. */
export type StorageAccess = "read" | "write";

/** The principal of credentials, and what they are for. */
export interface CredentialRequest {
  /** The folder of one table: they reach nothing outside of it. */
  readonly location: Location;
  readonly access: StorageAccess;
  /** Named in the cloud's own log where it has a place for that. */
  readonly principal: string;
}

/**
 * Hands out credentials that live for an hour at most.
 *
 * @returns What a Lance client takes as its `storage_options`.
 * @throws CatalogError ServiceUnavailable when the cloud gives none now, InvalidInput for a location that it cannot
 *   describe.
 */
export type CredentialVendor = (request: CredentialRequest) => Promise<Record<string, string>>;

/**
 * The error of a cloud that gives no credentials now. The cause is only logged, because it may name
 * roles and accounts, and only as its message: the errors of Google's library contain the failed
 * request, with a token in it.
 */
export function noCredentials({ location }: CredentialRequest, cause: unknown): CatalogError {
  return new CatalogError(
    "ServiceUnavailable",
    `credentials for ${location.uri} cannot be had now; try again, or ask with vend_credentials false`,
    { cause: new Error(String(cause)) },
  );
}
