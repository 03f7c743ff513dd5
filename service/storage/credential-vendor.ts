import { CatalogError } from "@tiltyard/protocol";
import type { Location } from "./location.ts";

/** The rights of credentials. `read` includes listing; `write` also includes reading and deleting. */
export type StorageAccess = "read" | "write";

export interface CredentialRequest {
  /** The folder of a table to which the credentials are restricted. */
  readonly location: Location;
  readonly access: StorageAccess;
  /** The name in the log of the cloud, where possible. */
  readonly principal: string;
}

/**
 * Vends credentials that expire after an hour at most.
 *
 * @returns The `storage_options` of a Lance client.
 * @throws CatalogError ServiceUnavailable if the cloud issues none; InvalidInput for a location that its policies
 * cannot express.
 */
export type CredentialVendor = (request: CredentialRequest) => Promise<Record<string, string>>;

/**
 * Creates the error of a cloud that issues no credentials. The cause is only logged, because it may name roles and
 * accounts. Only its message is logged, because errors of Google's library contain the failed request with its token.
 */
export function noCredentials({ location }: CredentialRequest, cause: unknown): CatalogError {
  return new CatalogError(
    "ServiceUnavailable",
    `credentials for ${location.uri} are not available now. Retry, or send vend_credentials: false`,
    { cause: new Error(String(cause)) },
  );
}
