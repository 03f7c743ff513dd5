import { type Access, CatalogError, formatIdentifier, includedRoles, isWithin } from "@tiltyard/protocol";
import type { JobGrant } from "../store/grants.ts";

interface Grants {
  readonly grants: readonly JobGrant[];
}

/** Requires that the principal has all rights. @throws CatalogError PermissionDenied */
export function authorize(principal: Grants & { readonly name: string }, accesses: readonly Access[]): void {
  for (const access of accesses)
    if (!isAllowed(principal, access))
      throw new CatalogError("PermissionDenied", `${principal.name} needs the role ${access.role} ${placeOf(access)}`);
}

/** Reports whether a principal, or a list of grants, has a right. */
export function isAllowed({ grants }: Grants, access: Access): boolean {
  return grants.some((grant) => includes(grant, access));
}

function placeOf({ object }: Access): string {
  return object === "anywhere"
    ? "on what it changes"
    : `on ${formatIdentifier(object)} or on a namespace that holds it`;
}

function includes(grant: JobGrant, { role, orRole, object }: Access): boolean {
  const included: readonly JobGrant["role"][] = includedRoles[grant.role];
  const suffices = included.includes(role) || (orRole !== undefined && included.includes(orRole));
  return suffices && (object === "anywhere" || isWithin(object, grant.namespace));
}
