import { type Identifier, includedRoles, isWithin, type Role } from "@tiltyard/protocol";
import type { AnswerTo } from "./api.ts";

export type Caller = AnswerTo<"describeCaller">;
type HeldRole = Caller["grants"][number]["role"];

const includes = (held: HeldRole, role: Role) => includedRoles[held].some((each) => each === role);

/**
 * Reports whether a caller has a role on an object. It only hides what the catalog would reject; the catalog decides
 * itself.
 */
export function may(caller: Caller, role: Role, id: Identifier): boolean {
  return caller.grants.some((grant) => includes(grant.role, role) && isWithin(id, grant.namespace));
}

/** Returns the namespaces on which a caller has a role, without those inside another one. */
export function entriesOf(caller: Caller, role: Role): readonly Identifier[] {
  const namespaces = caller.grants.filter((grant) => includes(grant.role, role)).map(({ namespace }) => namespace);
  return namespaces
    .filter((id) => !namespaces.some((other) => other.length < id.length && isWithin(id, other)))
    .sort((a, b) => (a.join("$") < b.join("$") ? -1 : 1));
}
