import { isDeepStrictEqual } from "node:util";
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

/** The kind of the object in the path of an operation. Objects of different kinds can have the same identifier. */
export type ObjectKind = NonNullable<JobGrant["kind"]> | "other";

const kinds: ReadonlyMap<string, ObjectKind> = new Map([
  ["table", "table"],
  ["materialized_view", "table"],
  ["job", "job"],
  ["jobs", "job"],
  ["transaction", "job"],
]);

/** Returns the kind of the objects of an operation by the path of its contract. */
export function kindInPath(path: string): ObjectKind {
  const [, name = ""] = /^(?:\/management)?\/v1\/(\w+)/.exec(path) ?? [];
  return kinds.get(name) ?? "other";
}

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

/**
 * Requires that the principal has all rights.
 *
 * @param kind The kind of the objects; undefined for any.
 * @throws MissingRight
 */
export function authorize(
  principal: Grants & { readonly name: string },
  accesses: readonly Access[],
  kind?: ObjectKind,
): void {
  for (const access of accesses)
    if (!isAllowed(principal, access, kind)) throw new MissingRight(principal.name, access);
}

/** Reports whether a principal, or a list of grants, has a right. @param kind The kind of the object; undefined for any. */
export function isAllowed({ grants }: Grants, access: Access, kind?: ObjectKind): boolean {
  return grants.some((grant) => includes(grant, access, kind));
}

/** Returns a function that reports whether a principal has a role on an object. */
export function withRole(principal: Grants, role: Role): (object: Identifier) => boolean {
  return (object) => isAllowed(principal, { role, object });
}

function includes(grant: JobGrant, { role, orRole, object }: Access, kind: ObjectKind | undefined): boolean {
  const included: readonly JobGrant["role"][] = includedRoles[grant.role];
  if (!included.includes(role) && (orRole === undefined || !included.includes(orRole))) return false;
  if (grant.kind !== undefined && kind !== undefined && grant.kind !== kind) return false;
  if (object === "anywhere") return true;
  return grant.kind === undefined ? isWithin(object, grant.namespace) : isDeepStrictEqual(object, grant.namespace);
}
