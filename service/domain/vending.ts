import type { Identifier } from "@tiltyard/protocol";
import type { Principal } from "../auth/authenticator.ts";
import { isAllowed } from "../auth/authorize.ts";
import type { CredentialVendors } from "../storage/credentials.ts";
import { parseLocation } from "../storage/location.ts";

/**
 * Vends credentials for the folder of a table, for responses with its location. They allow writing if the caller may
 * write the table, and reading otherwise. Requests receive them unless they decline them.
 *
 * @param uri The location of the table.
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
