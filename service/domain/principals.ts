import {
  CatalogError,
  formatIdentifier,
  type Identifier,
  KeyOwner,
  managementContracts,
  PrincipalName,
} from "@tiltyard/protocol";
import { generateApiKey, hashApiKey } from "../auth/api-key.ts";
import { isReservedKeyId } from "../auth/reserved-keys.ts";
import { deleteApiKey, putApiKey, revokeApiKeyInPlace } from "../store/api-keys.ts";
import * as grants from "../store/grants.ts";
import type { Session } from "../store/store.ts";
import { type Origin, recordAudit } from "./transaction.ts";

/** A new key. Its secret is stored nowhere else. */
export interface NewApiKey {
  readonly id: string;
  readonly key: string;
  /** The name of the transaction. */
  readonly transaction: string;
}

/**
 * Creates an API key for a principal.
 *
 * @param grant A role to grant at the same time.
 * @throws CatalogError InvalidInput for an invalid name of a principal.
 */
export async function createApiKey(
  session: Session,
  origin: Origin,
  principal: string,
  grant: grants.Grant | undefined,
): Promise<NewApiKey> {
  checkPrincipal(principal, KeyOwner);
  const { id, key } = generateApiKey();
  await putApiKey(session, id, principal, hashApiKey(key));
  if (grant !== undefined) await putGrant(session, origin, principal, grant);
  const properties = { api_key_id: id, principal };
  const change = { ...origin, contract: managementContracts.createApiKey, objects: [[]], properties };
  return { id, key, transaction: await recordAudit(session, change) };
}

/** Revokes a key with its tokens. @returns The name of the transaction. @throws CatalogError ApiKeyNotFound */
export async function revokeApiKey(session: Session, origin: Origin, id: string): Promise<string> {
  // The next start would install a deleted key of the configuration again.
  const principal = isReservedKeyId(id) ? await revokeApiKeyInPlace(session, id) : await deleteApiKey(session, id);
  if (principal === undefined)
    throw new CatalogError("ApiKeyNotFound", `the key ${id} does not exist. See the list of keys`);
  const properties = { api_key_id: id, principal };
  return recordAudit(session, { ...origin, contract: managementContracts.revokeApiKey, objects: [[]], properties });
}

/**
 * Grants a principal a role on a namespace and replaces its former role there.
 *
 * @returns The name of the transaction.
 * @throws CatalogError InvalidInput for an invalid name of a principal.
 */
export async function putGrant(
  session: Session,
  origin: Origin,
  principal: string,
  grant: grants.Grant,
): Promise<string> {
  checkPrincipal(principal);
  await grants.putGrant(session, principal, grant);
  const { namespace, role } = grant;
  const properties = { principal, role };
  return recordAudit(session, { ...origin, contract: managementContracts.putGrant, objects: [namespace], properties });
}

/** Revokes a grant. @returns The name of the transaction. @throws CatalogError GrantNotFound */
export async function revokeGrant(
  session: Session,
  origin: Origin,
  principal: string,
  namespace: Identifier,
): Promise<string> {
  if (!(await grants.deleteGrant(session, principal, namespace)))
    throw new CatalogError(
      "GrantNotFound",
      `${principal} has no role on ${formatIdentifier(namespace)}; see the list of grants`,
    );
  const properties = { principal };
  return recordAudit(session, {
    ...origin,
    contract: managementContracts.revokeGrant,
    objects: [namespace],
    properties,
  });
}

function checkPrincipal(principal: string, schema = PrincipalName): void {
  const { error } = schema.safeParse(principal);
  if (error !== undefined)
    throw new CatalogError("InvalidInput", `principal: ${error.issues.map((issue) => issue.message).join("; ")}`);
}
