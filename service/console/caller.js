/**
 * @typedef {import("./format.js").Identifier} Identifier
 * @typedef {import("@tiltyard/protocol").Role} Role
 * @typedef {{ principal: string, grants: readonly { namespace: Identifier, role: Role }[] }} Caller
 */

/** @type {readonly Role[]} */
export const roles = ["reader", "writer", "admin"];
/** What can be granted. A runner carries out jobs, and may do nothing else. */
export const grantableRoles = [...roles, "runner"];

/**
 * Whether a caller has a role on an object. The catalog decides by itself; this only hides what it would refuse.
 *
 * @param {Caller} caller
 * @param {Role} role
 * @param {Identifier} id
 */
export function may(caller, role, id) {
  return caller.grants.some(
    (grant) =>
      roles.indexOf(grant.role) >= roles.indexOf(role) && grant.namespace.every((part, index) => id[index] === part),
  );
}

/** The namespaces on which a caller has a role, without those that are in another one of them. @param {Caller} caller @param {Role} role */
export function entriesOf(caller, role) {
  const held = caller.grants.filter((grant) => roles.indexOf(grant.role) >= roles.indexOf(role));
  const namespaces = held.map(({ namespace }) => namespace);
  return namespaces
    .filter(
      (id) => !namespaces.some((other) => other.length < id.length && other.every((part, index) => id[index] === part)),
    )
    .sort((a, b) => (a.join("$") < b.join("$") ? -1 : 1));
}
