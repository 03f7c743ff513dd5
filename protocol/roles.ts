/**
 * The roles of a principal on an object and everything below it. A runner executes the jobs there and has no other
 * rights.
 */
export const roles = ["reader", "writer", "admin", "runner"] as const;
export type Role = (typeof roles)[number];

/** The role of a job on Geneva's records. It allows commits of versions, but no deletion, renaming or replacement. */
export type RoleOfJob = "committer";

/** The roles that each role includes. */
export const includedRoles = {
  reader: ["reader"],
  writer: ["reader", "writer", "committer"],
  admin: [...roles, "committer"],
  runner: ["runner"],
  committer: ["reader", "committer"],
} as const satisfies Readonly<Record<Role | RoleOfJob, readonly (Role | RoleOfJob)[]>>;
