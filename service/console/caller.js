import { includedRoles } from "./contracts.js";

/**
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {keyof typeof includedRoles} Role
 * @typedef {import("./calls.js").AnswerTo<"describeCaller">} Caller
 */

/** @param {Role} held @param {Role} role */
const includes = (held, role) => includedRoles[held].some((each) => each === role);
/** @param {Identifier} outer @param {Identifier} id */
const contains = (outer, id) => outer.every((part, index) => id[index] === part);

/**
 * Reports whether a caller has a role on an object. It only hides what the catalog would reject; the catalog decides
 * itself.
 *
 * @param {Caller} caller
 * @param {Role} role
 * @param {Identifier} id
 */
export function may(caller, role, id) {
  return caller.grants.some((grant) => includes(grant.role, role) && contains(grant.namespace, id));
}

/** Returns the namespaces on which a caller has a role, without those inside another one. @param {Caller} caller @param {Role} role */
export function entriesOf(caller, role) {
  const namespaces = caller.grants.filter((grant) => includes(grant.role, role)).map(({ namespace }) => namespace);
  return namespaces
    .filter((id) => !namespaces.some((other) => other.length < id.length && contains(other, id)))
    .sort((a, b) => (a.join("$") < b.join("$") ? -1 : 1));
}
