import {
  type Access,
  CatalogError,
  formatIdentifier,
  type Identifier,
  includedRoles,
  isWithin,
  type Role,
} from "@tiltyard/protocol";
import type { JobGrant } from "../store/grants.ts";

interface Grants {
  readonly grants: readonly JobGrant[];
}

export class MissingRight extends CatalogError {
  readonly access: Access;

  constructor(principal: string, access: Access) {
    const { role, object } = access;
    const where =
      object === "anywhere" ? "what it changes" : `${formatIdentifier(object)} or on a namespace that holds it`;
    super("PermissionDenied", `${principal} needs the role ${role} on ${where}`);
    this.access = access;
  }
}

/** Requires that the principal has all rights. @throws MissingRight */
export function authorize(principal: Grants & { readonly name: string }, accesses: readonly Access[]): void {
  for (const access of accesses) if (!isAllowed(principal, access)) throw new MissingRight(principal.name, access);
}

/** Reports whether a principal, or a list of grants, has a right. */
export function isAllowed({ grants }: Grants, access: Access): boolean {
  return grants.some((grant) => includes(grant, access));
}

/** Returns a function that reports whether a principal has a role on an object. */
export function withRole(principal: Grants, role: Role): (object: Identifier) => boolean {
  return (object) => isAllowed(principal, { role, object });
}

function includes(grant: JobGrant, { role, orRole, object }: Access): boolean {
  const included: readonly JobGrant["role"][] = includedRoles[grant.role];
  const suffices = included.includes(role) || (orRole !== undefined && included.includes(orRole));
  return suffices && (object === "anywhere" || isWithin(object, grant.namespace));
}
