import type { Identifier } from "@tiltyard/protocol";
import { isAllowed, type Principal } from "../auth/authenticator.ts";
import type { CredentialVendors } from "../storage/credentials.ts";
import { parseLocation } from "../storage/location.ts";

/**
 * Credentials for a table's folder, in the answers that have its location: to write for a caller
 * that may write the table, to read for all others. A request gets them unless it declines them.
 *
 * @param uri Of the table's location.
 * @throws CatalogError ServiceUnavailable, InvalidInput
 */
export async function vendCredentials(
  { credentials }: { readonly credentials: CredentialVendors | undefined },
  { principal }: { readonly principal: Principal },
  identifier: Identifier,
  uri: string,
  { vend_credentials = true }: { readonly vend_credentials?: boolean | undefined },
): Promise<{ readonly storage_options?: Record<string, string> }> {
  if (credentials === undefined || !vend_credentials) return {};
  const location = parseLocation(uri);
  const vend = await credentials.for(location);
  if (vend === undefined) return {};
  const access = isAllowed(principal, { role: "writer", object: identifier }) ? "write" : "read";
  return { storage_options: await vend({ location, access, principal: principal.name }) };
}
